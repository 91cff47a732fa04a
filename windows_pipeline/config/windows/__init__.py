"""The models of windows: one for each kind."""
