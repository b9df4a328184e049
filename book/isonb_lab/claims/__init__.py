"""One file a paper: recorded runs, printed numbers, and what they say about its claims."""
