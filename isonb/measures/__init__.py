"""Measures of isotropy and of what is near it: one number, or one a row, of a cloud."""
