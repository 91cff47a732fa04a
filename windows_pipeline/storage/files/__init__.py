"""The files of tables: their digests, their damage, and Hadoop's checksum files."""
