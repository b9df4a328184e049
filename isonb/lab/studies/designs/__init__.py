"""The designs of the studies: one file a paper, found by its name."""
