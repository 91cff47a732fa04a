"""Makes the reference page and the JSON Schema of pipeline files from their models."""
