"""Questions to the tables, answered for people."""
