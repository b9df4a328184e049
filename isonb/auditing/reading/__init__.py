"""Vectors from wherever a user has them: described first, then read by rows; errors say what would fix them."""

from isonb.auditing.reading.described import VectorsError
from isonb.auditing.reading.matrices import matrix, vectors_of

__all__ = ["VectorsError", "matrix", "vectors_of"]
