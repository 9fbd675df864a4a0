"""How a frame becomes a message of fixed size, and token ids become bytes.

    u32 LE length | frame | zero bytes up to the next of 64, 256, 1024, 4096, ... 262144

Sizes that do not tell how much was drafted or accepted: acceptance patterns fingerprint prompts (arXiv 2411.01076).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from .errors import ProtocolError

MAX_MESSAGE_BYTES = 64 * 4**6  # 262144
HEADER_BYTES = 4
ID_BYTES = 3  # little-endian u24


def pad(frame: bytes) -> bytes:
    """The message of a frame. Raises ProtocolError(frame_too_large) over 256 KiB."""
    size = padded_size(len(frame))
    return struct.pack("<I", len(frame)) + frame + bytes(size - HEADER_BYTES - len(frame))


def unpad(message: bytes) -> memoryview:
    """The frame in a message. Raises ProtocolError unless the message is exactly what `pad` makes."""
    if len(message) < HEADER_BYTES:
        raise ProtocolError("a message is shorter than its length field")
    (length,) = struct.unpack_from("<I", message)
    if padded_size(length) != len(message):
        raise ProtocolError(f"a message of {len(message)} bytes is not the padded form of a frame of {length} bytes")
    end = HEADER_BYTES + length
    if message.count(0, end) != len(message) - end:
        raise ProtocolError("the padding of a message is not zero")
    return memoryview(message)[HEADER_BYTES:end]


def padded_size(frame_bytes: int) -> int:
    size = 64
    while size < HEADER_BYTES + frame_bytes:
        size *= 4
    if size > MAX_MESSAGE_BYTES:
        limit = MAX_MESSAGE_BYTES - HEADER_BYTES
        raise ProtocolError(f"a frame of {frame_bytes} bytes is over the limit of {limit}", code="frame_too_large")
    return size


def pack_ids(ids: Sequence[int]) -> bytes:
    """Ids below 2^24, three bytes each."""
    wide = np.fromiter(ids, dtype="<u4", count=len(ids))
    assert not wide.size or int(wide.max()) < 2**24
    return wide.view(np.uint8).reshape(-1, 4)[:, :ID_BYTES].tobytes()


def unpack_ids(data: bytes, vocab_size: int) -> tuple[int, ...]:
    """Raises ProtocolError(token_id) for an id outside the vocabulary. `data` holds whole ids."""
    wide = np.zeros((len(data) // ID_BYTES, 4), dtype=np.uint8)
    wide[:, :ID_BYTES] = np.frombuffer(data, dtype=np.uint8).reshape(-1, ID_BYTES)
    ids: list[int] = wide.reshape(-1).view("<u4").tolist()
    if ids and max(ids) >= vocab_size:
        raise ProtocolError(f"token id {max(ids)} is not below the vocabulary's size, {vocab_size}", code="token_id")
    return tuple(ids)
