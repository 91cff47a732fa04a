"""The contract in plain, slow Python, each rule once more."""
