"""The command line: `windows-pipeline --help`."""

import sys
from importlib.util import find_spec

_OF_THE_EXTRA = (
    *("delta", "deltalake", "duckdb", "great_expectations", "markdown_it", "pydantic", "rich"),
    *("typer", "yaml"),
)


def command() -> None:
    """Runs the command line, or says that it needs the extra `pipeline`; then with status 2."""
    missing = [name for name in _OF_THE_EXTRA if find_spec(name) is None]
    if missing:
        fix = "install the extra `pipeline`: pip install 'windows-pipeline[pipeline]'"
        sys.stderr.write(f"error: {', '.join(missing)} must be installed, but is not; {fix}\n")
        sys.exit(2)
    from windows_pipeline.cli.main import main

    main()
