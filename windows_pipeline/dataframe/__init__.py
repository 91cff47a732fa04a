"""What a user of the library calls on a DataFrame, and in SQL."""
