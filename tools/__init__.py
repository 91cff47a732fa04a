"""Programs of the Makefile, and `reference`, which makes the reference of pipeline files."""
