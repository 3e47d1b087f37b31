"""Files written whole or not at all, or by one program at a time; files read up to a bound."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from strata_tui.errors import BadInput

try:
    import fcntl
except ImportError:  # a platform without such locks goes without them
    fcntl = None  # type: ignore[assignment]


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` at the end; a link's target is written, not the link.

    What is no regular file (a device, a pipe) is written through: it can't be replaced.

    Raises:
        OSError: it can't be written.
    """
    if path.exists() and not path.is_file():  # /dev/stdout resolves to what can't be opened
        with named(path), path.open("wb") as file:
            yield file
        return
    target = path.resolve()
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with named(path, hidden=unfinished):
            with unfinished.open("wb") as file:
                yield file
            os.replace(unfinished, target)
    finally:
        with suppress(OSError):  # a folder that lets nobody in: nothing lies there
            unfinished.unlink(missing_ok=True)


def sole_writer(path: Path, new: bool = False) -> BinaryIO:
    """`path`, empty, open for writing: until it is closed nobody else gets it this way.

    What another program writes keeps its content. What is no regular file (a device, a pipe) is shared.

    Args:
        new: the file must not exist.

    Raises:
        OSError: it can't be written, or is being written.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_EXCL if new else 0)  # emptied once it is ours
    file = os.fdopen(os.open(path, flags, 0o666), "wb")
    try:
        if path.is_file():
            _lock(file, path)
            file.truncate()
    except BaseException:
        file.close()
        raise
    return file


def _lock(file: BinaryIO, path: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        line = "expected a file that nobody records into, got one that another program records into now"
        raise BlockingIOError(errno.EWOULDBLOCK, line, str(path)) from None
    except OSError:
        pass  # a file system without locks


def regular(path: Path, expected: str = "a regular file") -> Path:
    """`path`, before it is opened: a pipe might be waited for without end, a device read without end.

    What is not there, or a folder, passes: who opens it says so.

    Raises:
        BadInput: it is a pipe, a device or a socket.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise BadInput(f"{path}: expected {expected}, got a pipe or a device")
    return path


def read_up_to(most_mib: int, file: BinaryIO, where: str) -> bytes:
    """All of `file`.

    Raises:
        BadInput: it holds more than that.
    """
    most_bytes = most_mib << 20
    data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise BadInput(f"{where}: expected a file of at most {most_mib} MiB, got a longer one")
    return data


@contextmanager
def named(path: Path, hidden: Path | None = None) -> Iterator[None]:
    """What the system says of a full disk names no file: it names `path` then, and in place of `hidden`."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        elif error.filename == str(hidden):
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise
