"""Frames survive the wire whole, and whatever is not exactly one valid frame is a ProtocolError, cheaply."""

import struct
import tracemalloc

import msgspec
import pytest
from hybrid.shared_protocol import frames
from hybrid.shared_protocol.errors import ProtocolError
from hybrid.shared_protocol.frames import decode, encode, pack_ids, unpack_ids
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.shared_protocol.wire import pad
from hypothesis import given, settings
from hypothesis import strategies as st

S, H = b"s" * 16, b"h" * 16
LIMITS = frames.Limits()
OPEN = frames.Open("smollm2-135m", "f" * 64, SamplingParams(temperature=0.8, stop=("a",)), -7, 30, 3, pack_ids([1, 2, 49151]))
CHAT = frames.Open("m", "f", SamplingParams(), 7, 0, 12, messages=(frames.ChatMessage("user", "Grüße 😊"),))
LOGPROBS = frames.TokenLogprobs(5, -0.5, pack_ids([5, 6]), (-0.5, -1.25))
DEVICE = [
    frames.Hello((1, 2), LIMITS),
    OPEN,
    CHAT,
    frames.Draft(S, 1, 10, H, pack_ids([7, 8, 9])),
    frames.Draft(S, 2**32 - 1, 10, H, b"", b"\0"),
    frames.Mode("pipelined"),
    frames.Cancel(),
    frames.Resume(S, H, 2**40, 12, H),
    frames.Resume(S, H, 2**40, 3, H, OPEN),
    frames.Close(),
    frames.Ping(9),
]
CLOUD = [
    frames.CloudHello(1, LIMITS),
    frames.Opened(S, "avx2-1", H, 1_800_000_000, 30),
    frames.Verdict(1, 3, None, 13, 20, H, 1_800_000_000, 30, "stop"),
    frames.Verdict(1, 3, 49151, 14, 20, H, 1_800_000_000, 30, None, (LOGPROBS,)),
    frames.Tokens(pack_ids([1]), 4, 2, H, 1_800_000_000, "length"),
    frames.Stale(2, 9, pack_ids([4, 5]), 11, H, 1_800_000_000),
    frames.Error("round_order", "round 4 came where 2 was due", 4, 1.5),
    frames.Pong(9),
]
ALL = [(frame, "to_cloud") for frame in DEVICE] + [(frame, "to_device") for frame in CLOUD]


@pytest.mark.parametrize("frame, direction", ALL, ids=lambda x: type(x).__name__)
def test_a_frame_comes_out_as_it_went_in(frame: object, direction: str) -> None:
    message = encode(frame)
    assert decode(message, direction) == frame
    assert len(message) in (64, 256, 1024)


def test_a_short_draft_and_its_verdict_take_64_bytes_each() -> None:
    assert len(encode(frames.Draft(S, 300, 300, H, pack_ids([1, 2, 3, 4])))) == 64
    assert len(encode(frames.Verdict(300, 4, 49151, 8000, 30000, H, 1_800_000_000, 30))) == 64


def test_the_message_of_a_verdict_does_not_tell_how_much_was_accepted() -> None:
    verdicts = [frames.Verdict(9, n, token, 50 + n, 200, H, 1_800_000_000, 30) for n in range(65) for token in (None, 0, 49151)]
    assert {len(encode(verdict)) for verdict in verdicts} == {64}


@pytest.mark.parametrize("size, padded", [(0, 64), (60, 64), (61, 256), (252, 256), (253, 1024), (65532, 65536), (262140, 262144)])
def test_messages_are_padded_to_fixed_sizes(size: int, padded: int) -> None:
    message = pad(b"\x01" * size)
    assert len(message) == padded and message[:4] == struct.pack("<I", size)
    assert message[4:] == b"\x01" * size + bytes(padded - 4 - size)


def test_a_frame_over_256_kib_is_refused_by_sender_and_receiver() -> None:
    with pytest.raises(ProtocolError) as caught:
        encode(frames.Error("code", "x" * 262144))
    assert caught.value.code == "frame_too_large"
    with pytest.raises(ProtocolError):
        decode(struct.pack("<I", 262141) + bytes(4**10 - 4), "to_device")


def test_padding_that_is_not_zero_or_not_needed_is_refused() -> None:
    good = encode(frames.Ping(1))
    for bad in (good[:-1] + b"\x01", good[:-1], good + bytes(192), good[:8], b"", good[:3]):
        with pytest.raises(ProtocolError):
            decode(bad, "to_cloud")


PING, DRAFT = 8, 3
OPEN_FIELDS = ["m", "f", {}, 7, 0, 1, b"abc", None]
FORGED = {
    "no array": {"type": PING},
    "unknown tag": [99],
    "tag of the wrong type": ["Ping"],
    "a field too many": [PING, 1, 2],
    "a negative integer": [PING, -1],
    "an integer over 32 bits": [PING, 2**32],
    "a float for an integer": [PING, 1.5],
    "a bool for an integer": [PING, True],
    "text for an integer": [PING, "1"],
    "an extension type": [PING, msgspec.msgpack.Ext(3, b"x")],
    "a timestamp": [PING, msgspec.msgpack.Ext(-1, bytes(8))],
    "a short session id": [DRAFT, b"s" * 15, 1, 1, H, b""],
    "a long hash": [DRAFT, S, 1, 1, b"h" * 17, b""],
    "65 draft ids": [DRAFT, S, 1, 1, H, bytes(65 * 3)],
    "a part of an id": [DRAFT, S, 1, 1, H, bytes(4)],
    "missing fields": [DRAFT, S, 1],
    "an unknown mode": [4, "fast"],
    "ids and messages": [2, *OPEN_FIELDS[:-1], [["user", "x"]]],
    "neither ids nor messages": [2, *OPEN_FIELDS[:-2], None, None],
    "a wrong prompt_len": [2, "m", "f", {}, 7, 0, 2, b"abc"],
    "an unknown sampling field": [2, "m", "f", {"beam": 1}, 7, 0, 1, b"abc"],
    "a sampling value out of range": [2, "m", "f", {"temperature": 9.0}, 7, 0, 1, b"abc"],
    "a temperature that is no number": [2, "m", "f", {"temperature": float("nan")}, 7, 0, 1, b"abc"],
    "a seed over 64 bits": [2, "m", "f", {}, 2**63, 0, 1, b"abc"],
    "a message with an unknown field": [2, "m", "f", {}, 7, 0, 1, None, [["user", "x", "y"]]],
    "nesting": [2, "m", "f", [[[[[[]]]]]], 7, 0, 1, b"abc"],
    "a frame of the other direction": [3, 1, 3, 1, 13, 20, H, 1, 30],
}


@pytest.mark.parametrize("fields", FORGED.values(), ids=FORGED.keys())
def test_forged_frames_are_protocol_errors(fields: object) -> None:
    with pytest.raises(ProtocolError):
        decode(pad(msgspec.msgpack.encode(fields)), "to_cloud")


@pytest.mark.parametrize("wait", [float("nan"), float("inf"), -1.0])
def test_a_cloud_that_sends_odd_floats_is_refused(wait: float) -> None:
    with pytest.raises(ProtocolError):
        decode(pad(msgspec.msgpack.encode([6, "code", "text", None, wait])), "to_device")
    with pytest.raises(ValueError):
        frames.Error("code", "text", retry_after_s=wait)


@pytest.mark.parametrize(
    "body",
    [
        b"\x93\x01\xdd\xff\xff\xff\xff\x01",  # an array of 2^32 - 1 items
        b"\x93\x01\xdf\xff\xff\xff\xff",  # a map
        b"\x92\x08\xc6\xff\xff\xff\xff",  # 4 GB of bytes
        b"\x92\x08\xdb\xff\xff\xff\xff",  # 4 GB of text
        b"\x92\x08\xc9\xff\xff\xff\xff\x01",  # an extension of 4 GB
        b"\x93\x01" + b"\x91" * 200_000,  # 200,000 levels deep
        b"\x91" * 200_000,
        b"\x98\x02\xa1m\xa1f" + b"\x81\xa4stop" * 20_000,
        b"\x92\x08\xa1\xff",  # no UTF-8
    ],
)
def test_a_length_that_lies_costs_no_memory(body: bytes) -> None:
    message = pad(body)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decode(message, "to_cloud")
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def only_protocol_errors(message: bytes) -> None:
    for direction in ("to_cloud", "to_device"):
        try:
            frame = decode(message, direction)
        except ProtocolError as error:
            assert len(str(error)) < 400
        else:
            assert decode(encode(frame), direction) == frame


@settings(max_examples=300)
@given(st.binary(max_size=300))
def test_random_bytes_raise_nothing_but_protocol_errors(body: bytes) -> None:
    only_protocol_errors(body)
    only_protocol_errors(pad(body))


@settings(max_examples=500)
@given(frame=st.sampled_from([frame for frame, _ in ALL]), data=st.data())
def test_mutated_frames_raise_nothing_but_protocol_errors(frame: object, data: st.DataObject) -> None:
    body = bytearray(msgspec.msgpack.encode(frame))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(len(body) - 1, 0)))
        kind = data.draw(st.sampled_from(["set", "delete", "insert", "cut"]))
        if kind == "set" and body:
            body[at] = data.draw(st.integers(0, 255))
        elif kind == "delete":
            del body[at : at + data.draw(st.integers(1, 8))]
        elif kind == "insert":
            body[at:at] = data.draw(st.binary(min_size=1, max_size=8))
        else:
            del body[at:]
    only_protocol_errors(pad(bytes(body)))


trees = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=8) | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=300)
@given(tag=st.integers(0, 9), fields=st.lists(trees, max_size=10))
def test_well_formed_nonsense_raises_nothing_but_protocol_errors(tag: int, fields: list[object]) -> None:
    only_protocol_errors(pad(msgspec.msgpack.encode([tag, *fields])))


@given(st.lists(st.integers(0, 2**24 - 1), max_size=70))
def test_packed_ids_come_back(ids: list[int]) -> None:
    packed = pack_ids(ids)
    assert packed == b"".join(i.to_bytes(3, "little") for i in ids)
    assert unpack_ids(packed, 2**24) == tuple(ids)


def test_an_id_outside_the_vocabulary_is_refused() -> None:
    assert unpack_ids(pack_ids([49151]), 49152) == (49151,)
    with pytest.raises(ProtocolError, match="49152") as caught:
        unpack_ids(pack_ids([1, 49152]), 49152)
    assert caught.value.code == "token_id"
