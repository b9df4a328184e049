"""The dial, made: readers, encodings and the record that the book reads."""

from isonb_lab.papers import dial as plan  # what the plan names, and the recorded tables

__all__ = ["plan"]
