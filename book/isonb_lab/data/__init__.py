"""Rows of a task, wherever they come from, and scores; the files beside are data of the lab."""
