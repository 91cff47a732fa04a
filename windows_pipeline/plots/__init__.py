"""Plots as small SVG drawings: windows, distributions, episodes; plain values in, markup out."""
