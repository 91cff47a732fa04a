"""When a window fires, and the functions that process a firing."""
