"""The Delta tables of a pipeline: schemas, locations, idempotent writes."""
