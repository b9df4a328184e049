"""What can go wrong between a chapter and its page, each with its own type."""

from __future__ import annotations


class PageError(ValueError):
    """Base of every error of :mod:`isonb_lab.pages`. The message says what must hold, what came, and what to do."""


class ParameterError(PageError):
    """A chapter parameter that breaks the grammar, or a value that breaks the parameter."""


class LintError(PageError):
    """A chapter that breaks the rules of the book."""


class PairingError(PageError):
    """A notebook and its source disagree, and writing one would lose an edit of the other."""


class ChapterError(PageError):
    """A chapter that isn't there, or a cell that failed."""


class BuildError(PageError):
    """The pages couldn't be built."""
