"""Whole files, a user's tables, what may be printed, how reports look. It uses :mod:`isonb.errors` alone."""
