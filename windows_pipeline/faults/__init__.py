"""What an error means for the user: what is wrong, why, and what helps.

The command line prints a fault in a few lines, Dagster shows the same words as a failure.
"""
