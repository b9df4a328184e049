"""Encoders: where one lies, how it is loaded, how it encodes texts."""
