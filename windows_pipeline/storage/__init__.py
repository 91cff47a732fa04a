"""Delta tables: their names, columns, writers, readers and maintenance."""
