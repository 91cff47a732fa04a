"""Which firings a trigger makes, and what each holds."""
