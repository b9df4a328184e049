"""Locks between processes, and processes that end with ours."""
