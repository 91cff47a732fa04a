"""Which records each window holds."""
