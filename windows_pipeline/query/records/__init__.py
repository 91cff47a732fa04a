"""The records behind windows: which count, when they arrived, and where they lie."""
