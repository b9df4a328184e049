"""Models, wherever they come from; sentence vectors; the head."""
