"""Statistics of a cloud that arrives in pieces."""
