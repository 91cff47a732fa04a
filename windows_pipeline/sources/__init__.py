"""Reads landed files and Kafka, and accepts or rejects each record.

`streaming/sources.py` opens the sources of streams, Delta tables too.
"""
