"""The dial: vectors as they are, turned by degrees, and what each reader makes of them."""
