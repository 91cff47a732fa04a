"""Programs of the Makefile: `install.sh`, `require.sh` and `ui.py`."""
