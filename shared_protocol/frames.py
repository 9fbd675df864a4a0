"""The frames of `/v1/speculate`: MessagePack arrays with a tag, nothing unknown, no extension types, at most four levels deep.

`wire` pads every message, in both directions. One connection carries one session at a time; `round` counts up from 1.
Token ids travel packed, as one `bin`. Lengths named `_len` count tokens of the whole sequence, prompt included.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, overload

import msgspec
from msgspec import Meta, Struct

from .errors import HybridError, ProtocolError
from .sampling import SamplingParams
from .wire import ID_BYTES, MAX_MESSAGE_BYTES, pad, unpad
from .wire import pack_ids as pack_ids
from .wire import unpack_ids as unpack_ids

VERSION = 1
MAX_DRAFT_IDS = 64
WINDOW = 8  # rounds whose answers are kept for repeats

U32 = Annotated[int, Meta(ge=0, lt=2**32)]
TokenId = Annotated[int, Meta(ge=0, lt=2**24)]
I64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Expiry = Annotated[int, Meta(ge=0, lt=2**53)]  # seconds of Unix time
Name = Annotated[str, Meta(max_length=256)]
Bytes16 = Annotated[bytes, Meta(min_length=16, max_length=16)]
SessionId = Bytes16  # 128 random bits
PackedIds = bytes
Finish = Literal["stop", "length"]


class Frame(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Floats must be finite and packed ids whole; checked when a frame is made and again when it is decoded."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, float) and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be finite and not negative")
            if name in _PACKED and value is not None and len(value) % ID_BYTES:
                raise ValueError(f"{name} must hold whole ids of {ID_BYTES} bytes")


_PACKED = frozenset({"ids", "top_ids", "path"})


class Limits(Frame, frozen=True):
    """What one side takes: bytes of a message, ids of a draft, rounds kept."""

    message_bytes: U32 = MAX_MESSAGE_BYTES
    draft_ids: U32 = MAX_DRAFT_IDS
    window: U32 = WINDOW


class ChatMessage(Frame, frozen=True):
    role: Annotated[str, Meta(max_length=32)]
    content: str


class TokenLogprobs(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Raw log-probability of one committed token, and of the most likely ones, best first."""

    token_id: TokenId
    logprob: float
    top_ids: PackedIds = b""
    top_logprobs: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not all(math.isfinite(x) and x <= 0 for x in (self.logprob, *self.top_logprobs)):
            raise ValueError("log-probabilities must be finite and at most 0")
        if len(self.top_ids) != ID_BYTES * len(self.top_logprobs):
            raise ValueError("top_ids and top_logprobs differ in length")


# --- device -> cloud ----------------------------------------------------------------------------------------------------------------


class Hello(Frame, frozen=True, tag=1):
    versions: tuple[U32, ...]
    limits: Limits


class Open(Frame, frozen=True, tag=2):
    """Start a session. `ids` when the device renders as the cloud does, `messages` when only its template is another one; never both.

    `fingerprint` is that of vocabulary and template with `ids`, of the vocabulary alone with `messages` (model_card.py). The cloud
    computes the first prompt_len - 1 tokens. `lease_s` 0: the cloud's default.
    """

    model: Name
    fingerprint: Name
    sampling: SamplingParams
    seed: I64
    lease_s: U32
    prompt_len: U32
    ids: PackedIds | None = None
    messages: tuple[ChatMessage, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.ids is None) == (self.messages is None):
            raise ValueError("exactly one of ids and messages must be given")
        if self.ids is not None and len(self.ids) != ID_BYTES * self.prompt_len:
            raise ValueError("prompt_len is not the number of ids")


class Draft(Frame, frozen=True, tag=3):
    """`ids` are drafted to follow the first `base_len` tokens, whose hash is `prefix_hash`; none: a plain step. `parents`: of a tree."""

    session: SessionId
    round: U32
    base_len: U32
    prefix_hash: Bytes16
    ids: Annotated[PackedIds, Meta(max_length=ID_BYTES * MAX_DRAFT_IDS)]
    parents: Annotated[bytes, Meta(max_length=MAX_DRAFT_IDS)] | None = None


class Mode(Frame, frozen=True, tag=4):
    mode: Literal["plain", "sync", "pipelined"]


class Cancel(Frame, frozen=True, tag=5):
    """Stop the session; an answer on its way is dropped."""


class Resume(Frame, frozen=True, tag=6):
    """Take a session up again; `open`, with all committed ids, only after Error(unknown_session)."""

    session: SessionId
    ticket: Bytes16
    expiry: Expiry
    committed_len: U32
    prefix_hash: Bytes16
    open: Open | None = None


class Close(Frame, frozen=True, tag=7):
    """The device is done with the session; another may be opened on the same connection."""


class Ping(Frame, frozen=True, tag=8):
    nonce: U32 = 0


# --- cloud -> device ----------------------------------------------------------------------------------------------------------------


class CloudHello(Frame, frozen=True, tag=1):
    version: U32
    limits: Limits


class Opened(Frame, frozen=True, tag=2):
    """`ticket` covers the prompt; `expiry` is when it ends; a session idle for `lease_s` is closed."""

    session: SessionId
    kernel_id: Name
    ticket: Bytes16
    expiry: Expiry
    lease_s: U32


class Verdict(Frame, frozen=True, tag=3):
    """n_accepted of the window's ids stand, `token` follows (None when a finish lies inside the accepted run).

    committed_len = base_len + n_accepted + (1 if there is a token). `visible_len`: UTF-8 bytes of the completion that may be shown.
    """

    round: U32
    n_accepted: U32
    token: TokenId | None
    committed_len: U32
    visible_len: U32
    ticket: Bytes16
    expiry: Expiry
    lease_s: U32
    finish: Finish | None = None
    logprobs: tuple[TokenLogprobs, ...] | None = None
    path: PackedIds | None = None


class Tokens(Frame, frozen=True, tag=4):
    """Committed tokens of plain mode."""

    ids: PackedIds
    committed_len: U32
    visible_len: U32
    ticket: Bytes16
    expiry: Expiry
    finish: Finish | None = None


class Stale(Frame, frozen=True, tag=5):
    """The device's sequence differs or ends early: `ids` are the committed ones from index `start` on."""

    round: U32
    start: U32
    ids: PackedIds
    committed_len: U32
    ticket: Bytes16
    expiry: Expiry


class Error(Frame, frozen=True, tag=6):
    """`code` is that of a HybridError. With a `round`, that round was not taken; the session stands unless the code says otherwise."""

    code: Name
    message: str
    round: U32 | None = None
    retry_after_s: float | None = None


class Pong(Frame, frozen=True, tag=7):
    nonce: U32 = 0


DeviceFrame = Hello | Open | Draft | Mode | Cancel | Resume | Close | Ping
CloudFrame = CloudHello | Opened | Verdict | Tokens | Stale | Error | Pong
Direction = Literal["to_cloud", "to_device"]

_encoder = msgspec.msgpack.Encoder()
_to_cloud = msgspec.msgpack.Decoder(DeviceFrame)
_to_device = msgspec.msgpack.Decoder(CloudFrame)


def encode(frame: DeviceFrame | CloudFrame) -> bytes:
    """The padded message of a frame. Raises ProtocolError(frame_too_large) over 256 KiB."""
    return pad(_encoder.encode(frame))


@overload
def decode(message: bytes, direction: Literal["to_cloud"]) -> DeviceFrame: ...
@overload
def decode(message: bytes, direction: Literal["to_device"]) -> CloudFrame: ...
def decode(message: bytes, direction: Direction) -> DeviceFrame | CloudFrame:
    """The frame of a padded message. Raises ProtocolError, and nothing else, on whatever is not exactly one valid frame."""
    body = unpad(message)
    decoder = _to_cloud if direction == "to_cloud" else _to_device
    try:
        return decoder.decode(body)
    except HybridError as error:  # a nested SamplingParams
        raise ProtocolError(str(error), code=error.code) from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ProtocolError(f"a frame is malformed: {str(error)[:200]}") from None
