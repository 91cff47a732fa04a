"""The files of tables: what readers without Spark open, and the error of an unreadable one."""
