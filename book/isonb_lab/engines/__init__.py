"""One run: what happens to a model on a task."""
