"""What one arrival unit changed and closed."""
