"""Where records come from: landed files, and which of them are accepted."""
