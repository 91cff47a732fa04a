"""Delta tables: how each is named, written, read and kept."""
