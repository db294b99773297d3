"""pykeep for Python: starts the program that this package carries (`pykeep`, `python -m pykeep`)."""
