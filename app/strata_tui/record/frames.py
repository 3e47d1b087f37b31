"""The bytes of a recording: a magic, then frames that each stand for themselves.

    magic   8 bytes "\\x89STRATA\\n", then major and minor version, u16 each
    frame   kind u8, 3 zero bytes, packed size u32, unpacked size u32, CRC-32 u32 of these 12 bytes and of
            what follows; then the payload, packed by zlib
    events  payload: count u32, then column after column of EVENT_DTYPE, each as byte planes (all lowest
            bytes first); start_ns and window as differences to the event before

All numbers are little-endian. Frames are appended and flushed one at a time, so that a file of a process that
was killed is whole up to its last frame. A reader skips kinds that it doesn't know; what it couldn't skip has
another major version.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from strata_tui.errors import BadInput
from strata_tui.events import EVENT_DTYPE, Events

MAGIC = b"\x89STRATA\n"
VERSION = (1, 0)
VERSION_FORMAT = struct.Struct("<HH")
HEAD = struct.Struct("<BxxxIII")
MAX_PAYLOAD = 32 << 20  # bytes, packed or not: a prompt of a million tokens fits, a bomb does not
EVENTS_A_FRAME = 1 << 16
LEVEL = 3  # of zlib: twice the speed of the default for a twelfth more bytes
DIFFERENCES = ("start_ns", "window")


class FrameKind(IntEnum):
    """What a frame holds; all but `events` are JSON objects."""

    header = 1
    request = 2  # a request begins
    events = 3
    text = 4  # tokens and their text, as they came
    request_end = 5
    vocabulary = 6  # what tokens are written as, by id
    close = 7


@dataclass(frozen=True)
class Frame:
    """One whole frame. `at`: where in the file it begins."""

    kind: int
    payload: bytes
    at: int


def packed(kind: FrameKind, payload: bytes) -> bytes:
    """A frame as it stands in the file."""
    if len(payload) > MAX_PAYLOAD:
        raise BadInput(f"[recording] a frame holds {MAX_PAYLOAD:,} bytes at most, got {len(payload):,}")
    body = zlib.compress(payload, LEVEL)
    sizes = HEAD.pack(kind, len(body), len(payload), 0)[:12]
    return sizes + struct.pack("<I", zlib.crc32(body, zlib.crc32(sizes))) + body


def preamble() -> bytes:
    """What a file begins with."""
    return MAGIC + VERSION_FORMAT.pack(*VERSION)


def read_preamble(file: BinaryIO, name: str) -> None:
    """Refuse what is no recording, or one that can't be read here.

    Raises:
        BadInput: in one line.
    """
    start = file.read(len(MAGIC) + VERSION_FORMAT.size)
    if not start.startswith(MAGIC):
        raise BadInput(
            f"[recording] {name}: expected a recording (.strata) or a text trace of the upstream engine, "
            f"got {f'a file that begins with {start[:8]!r}' if start else 'an empty file'}"
        )
    if len(start) < len(MAGIC) + VERSION_FORMAT.size:
        raise BadInput(f"[recording] {name}: cut off before the end of its header")
    major, minor = VERSION_FORMAT.unpack(start[len(MAGIC) :])
    if major != VERSION[0]:
        raise BadInput(f"[recording] {name}: expected version {VERSION[0]}.x, got {major}.{minor}")


def whole_frames(file: BinaryIO, name: str) -> Iterator[Frame]:
    """The frames from here on, up to the first that is not whole: there the file was cut off, or damaged.

    Raises:
        BadInput: sizes that no recording has, or a payload that is not what its frame says.
    """
    at = file.tell()
    while len(head := file.read(HEAD.size)) == HEAD.size:
        kind, n_packed, n_payload, crc = HEAD.unpack(head)
        if not kind:
            return
        if max(n_packed, n_payload) > MAX_PAYLOAD:
            raise BadInput(
                f"[recording] {name}: the frame at byte {at:,} should hold {MAX_PAYLOAD:,} bytes at most, "
                f"says {max(n_packed, n_payload):,}"
            )
        body = file.read(n_packed)
        if len(body) < n_packed or zlib.crc32(body, zlib.crc32(head[:12])) != crc:
            return
        yield Frame(kind, _unpacked(body, n_payload, f"[recording] {name}: the frame at byte {at:,}"), at)
        at += HEAD.size + n_packed


def _unpacked(body: bytes, n_payload: int, where: str) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        payload = unpacker.decompress(body, n_payload + 1)  # 0 would mean: no limit
    except zlib.error:
        raise BadInput(f"{where} is not packed as it should be") from None
    if len(payload) != n_payload or not unpacker.eof:
        raise BadInput(f"{where} should unpack to {n_payload:,} bytes and does not")
    return payload


def pack_events(events: Events) -> bytes:
    """The payload of an event frame; [n], n at most EVENTS_A_FRAME."""
    parts = [struct.pack("<I", len(events))]
    for name in EVENT_DTYPE.names or ():
        column = np.ascontiguousarray(events[name])
        if name in DIFFERENCES:
            column = np.diff(column, prepend=column.dtype.type(0))  # unsigned: what falls wraps round
        parts.append(_planes(column).tobytes())
    return b"".join(parts)


def _planes(column: npt.NDArray[np.generic]) -> npt.NDArray[np.uint8]:
    """[itemsize, n] the bytes of a column, lowest first: those that hardly change lie together."""
    return column.view(np.uint8).reshape(len(column), column.itemsize).T


def unpack_events(payload: bytes, where: str) -> Events:
    """[n] the events of a frame, as they were packed.

    Raises:
        BadInput: the payload has not the size of its events.
    """
    count = struct.unpack_from("<I", payload)[0] if len(payload) >= 4 else -1
    if count < 0 or len(payload) != 4 + count * EVENT_DTYPE.itemsize:
        raise BadInput(f"{where} should hold {max(count, 0):,} events, holds {len(payload):,} bytes")
    events = np.empty(count, EVENT_DTYPE)
    at = 4
    for name in EVENT_DTYPE.names or ():
        kind = EVENT_DTYPE[name]
        planes = np.frombuffer(payload, np.uint8, count * kind.itemsize, at).reshape(kind.itemsize, count)
        column = np.ascontiguousarray(planes.T).reshape(-1).view(kind)
        events[name] = np.cumsum(column, dtype=kind) if name in DIFFERENCES else column
        at += count * kind.itemsize
    return events
