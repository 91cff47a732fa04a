"""The command line: `windows-pipeline --help`."""
