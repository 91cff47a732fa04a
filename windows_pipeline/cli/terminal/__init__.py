"""What the command line prints: where to, in which form, and what is logged."""
