"""Files that are whole or not there.

A file is written beside its place under a name of its own, flushed to disk and moved, so a killed process or a full
disk leaves either the old file or none.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from isonb.errors import InputError

OPEN = ("/dev", "/dev/fd", "/proc/self/fd")  # folders of what is open already, and of devices


class DiskError(InputError):
    """The disk has refused a file: it is full, or doesn't let us write there."""


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """What is written inside the block is put at ``path`` in one move at its end; the last of several writers wins.

    Makes the folder. Raises :class:`DiskError` when the disk refuses; the old file is then untouched and nothing
    half-written stays.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        raise _refused(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def replace(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path``, as :func:`replacing` does."""
    with replacing(path) as file:
        file.write(content)


def deliver(path: Path, content: bytes) -> None:
    """:func:`replace` for a path that a user names: devices, pipes and open files are written to, links followed.

    Raises :class:`DiskError` when that is refused.
    """
    if str(path.parent) not in OPEN and (not path.exists() or path.is_file()):
        replace(path.resolve(), content)
        return
    try:
        with path.open("ab") as stream:  # behind what an open file has already
            stream.write(content)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _refused(path, error) from error


def update(path: Path, text: str) -> bool:
    """:func:`replace` with ``text`` in UTF-8, unless that is what the file holds. Returns whether it was written."""
    content = text.encode()
    if path.is_file() and path.read_bytes() == content:
        return False
    replace(path, content)
    return True


def _refused(path: Path, error: OSError) -> DiskError:
    full = error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
    fix = "Free some space and run it again." if full else "Check the folder and its permissions."
    return DiskError(f"the disk must take {path.name}; got {error.strerror or error}. {fix}")
