"""The dial: vectors as they are, turned by degrees, and what each reader makes of them."""

from isonb.lab.studies.design import study_file

plan = study_file("dial")  # what the plan names, and the recorded tables: beside the other studies of the book
