"""Intervals, and what a handful of seeds can show."""
