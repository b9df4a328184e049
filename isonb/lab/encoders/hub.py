"""The Hugging Face hub asked once: whether it answers, where its own clients would try again for half a minute."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["Silence", "ask", "first_line"]

T = TypeVar("T")


class Silence(Exception):
    """No answer: offline mode, no route, refused or timed out."""


def ask(question: Callable[[], T]) -> T:
    """What ``question`` (one request with a timeout) returns.

    A refusal by the hub is an answer too, and stays the ``HfHubHTTPError`` it is; everything else is :class:`Silence`.
    """
    from huggingface_hub.errors import HfHubHTTPError

    try:
        return question()
    except HfHubHTTPError:
        raise
    except Exception as error:  # an error of whichever client is in use
        raise Silence(str(error)) from error


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its type where there is none."""
    return str(error).strip().split("\n")[0] or type(error).__name__
