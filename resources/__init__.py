"""What assets use from outside."""
