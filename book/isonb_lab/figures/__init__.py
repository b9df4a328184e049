"""The pictures of the chapters, one file a chapter."""
