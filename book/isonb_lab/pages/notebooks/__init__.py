"""Chapters as plain Markdown notebooks, and edits of those back in the sources."""
