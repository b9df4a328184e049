"""What the runs say on the questions of the book: in plain words, over all tasks, and whether they come back."""
