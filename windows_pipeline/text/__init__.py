"""Text from outside: files, YAML with line numbers, limits of length, problems with their line."""
