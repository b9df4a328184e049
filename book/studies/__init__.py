"""The studies of this book, one file a paper; beside them what several of them share."""
