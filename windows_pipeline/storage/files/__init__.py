"""The files of tables: their digests, their damage, and what Hadoop keeps beside them."""
