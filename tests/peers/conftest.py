"""The stand-ins change the peers when they are imported: pytest's search for doctests must not do that."""

collect_ignore = ["shims.py"]
