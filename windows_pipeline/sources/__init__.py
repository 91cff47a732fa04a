"""Reads records from landed files and Kafka, and decides which records are accepted."""
