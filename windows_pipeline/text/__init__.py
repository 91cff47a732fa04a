"""Reads users' text: small files and YAML, with limits of length and a line for each problem."""
