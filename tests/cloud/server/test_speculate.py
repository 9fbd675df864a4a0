"""The cloud's side of a drafted answer, frame by frame, over a target that says a given text."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from hybrid.cloud.engine.frontend import Frontend
from hybrid.cloud.server.speculate.handler import SpeculateHandler, SpeculateService
from hybrid.cloud.server.speculate.limits import SpeculateLimits
from hybrid.shared_protocol import frames
from hybrid.shared_protocol.errors import Unavailable
from hybrid.shared_protocol.frames import pack_ids
from hybrid.shared_protocol.model_card import ModelCard
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.shared_protocol.ticket import Claims, check
from hybrid.shared_protocol.verify import prefix_hash
from hybrid.tests.support.byte_tokenizer import EOS, ByteTokenizer
from hybrid.tests.support.drafting import Device, opening
from hybrid.tests.support.remote_engine import RemoteEngine

CARD = ModelCard("toy", "toy", "F32", 0, 64, 258, "bytes", "toy-hash", 0, "Apache-2.0")
SECRET = b"a secret for tests"
PROMPT = b"Q:"


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Cloud:
    """A service whose model answers PROMPT with `text`."""

    text: bytes = b"The END of it"
    limits: SpeculateLimits = field(default_factory=SpeculateLimits)
    held: bool = False
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        said = [*PROMPT, *self.text, *[EOS] * 70]
        self.engine = RemoteEngine(lambda sequence, _: said[len(sequence)], eos_ids=(EOS,), held=self.held)
        frontend = Frontend(SimpleNamespace(tokenizer=ByteTokenizer(), card=CARD, render_chat=self.render), self.engine)
        counter = iter(range(10**6))
        self.service = SpeculateService(
            frontend,
            secret=SECRET,
            limits=self.limits,
            monotonic=self.clock,
            wall=lambda: 1.8e9 + self.clock.now,
            random_bytes=lambda n: next(counter).to_bytes(n, "big"),
        )

    @staticmethod
    def render(messages: list[dict[str, str]], limit: int | None) -> list[int]:
        return list("".join(f"{m['role']}:{m['content']}" for m in messages).encode())

    async def greeted(self, key: str = "key") -> SpeculateHandler:
        handler = self.service.connect(key)
        assert await handler.handle(frames.Hello((1,), frames.Limits())) == [frames.CloudHello(1, frames.Limits())]
        return handler


async def started(cloud: Cloud, **sampling: object) -> Device:
    device = Device(await cloud.greeted(), opening())
    await device.open(**sampling)
    return device


async def error_of(handler: SpeculateHandler, frame: frames.DeviceFrame) -> frames.Error:
    (error,) = await handler.handle(frame)
    assert isinstance(error, frames.Error), error
    return error


# --- an answer ---------------------------------------------------------------------------------------------------------------------


async def test_right_drafts_wrong_drafts_and_plain_steps_give_the_cloud_s_text() -> None:
    device = await started(Cloud(text=b"Hello!"))
    first = await device.draft(b"Hel")
    assert (first.n_accepted, first.token, first.visible_len, first.finish) == (3, ord("l"), 4, None)
    second = await device.draft(b"xy")
    assert (second.n_accepted, second.token) == (0, ord("o"))
    third = await device.draft()
    assert (third.n_accepted, third.token) == (0, ord("!"))
    last = await device.draft((EOS, 5, 6))
    assert (last.n_accepted, last.token, last.visible_len, last.finish) == (1, None, 6, "stop")
    assert device.committed == (*b"Q:Hello!", EOS)


async def test_the_engine_is_given_the_prompt_the_seed_and_the_key_as_salt() -> None:
    cloud = Cloud()
    await started(cloud, temperature=0.5)
    (add,) = cloud.engine.added
    assert (add.prompt_ids, add.seed, add.cache_salt, add.remote) == (tuple(PROMPT), 7, "key", True)


async def test_max_tokens_ends_the_answer_with_length() -> None:
    device = await started(Cloud(), max_tokens=4)
    verdict = await device.draft(b"The END")
    assert (verdict.n_accepted, verdict.token, verdict.finish) == (4, None, "length")


async def test_a_stop_string_inside_the_accepted_run_cuts_it() -> None:
    cloud = Cloud(text=b"The END of it")
    device = await started(cloud, stop=("END",))
    verdict = await device.draft(b"The END of")
    assert (verdict.n_accepted, verdict.token, verdict.finish) == (7, None, "stop")
    assert verdict.visible_len == len("The ")
    assert cloud.engine.alive == 0  # the engine was told to stop


async def test_a_stop_string_that_the_cloud_s_own_token_completes_keeps_that_token() -> None:
    device = await started(Cloud(), stop=("END",))
    verdict = await device.draft(b"The EN")
    assert (verdict.n_accepted, verdict.token, verdict.finish, verdict.visible_len) == (6, ord("D"), "stop", 4)


async def test_what_may_become_a_stop_string_is_not_shown_yet() -> None:
    device = await started(Cloud(text=b"The EN!"), stop=("END",))
    assert (await device.draft(b"The E")).visible_len == len("The ")  # "EN" is held back
    assert (await device.draft()).visible_len == len("The EN!")


async def test_a_character_is_not_shown_before_it_is_whole() -> None:
    device = await started(Cloud(text="a😊b".encode()))
    assert (await device.draft("a😊".encode()[:3])).visible_len == 1
    assert (await device.draft()).visible_len == 5


async def test_log_probabilities_come_for_the_committed_tokens_only() -> None:
    device = await started(Cloud(), logprobs=1, stop=("END",))
    assert [p.token_id for p in (await device.draft(b"Thx")).logprobs] == list(b"The")
    verdict = await device.draft(b" END of")
    assert [p.token_id for p in verdict.logprobs] == list(b" END")
    assert verdict.logprobs[0] == frames.TokenLogprobs(ord(" "), -0.25, pack_ids(b" "), (-0.25,))


async def test_every_answer_carries_a_ticket_for_exactly_what_is_committed() -> None:
    cloud = Cloud()
    device = Device(await cloud.greeted(), opening())
    answers = [await device.open(max_tokens=9), await device.draft(b"The"), await device.draft(b"xx")]
    committed = [PROMPT, b"Q:The ", b"Q:The E"]
    for answer, ids in zip(answers, committed, strict=True):
        sampling = SamplingParams(max_tokens=9)
        claims = Claims("key", "toy-hash", "toy-1", 7, sampling, 2, len(ids), prefix_hash(ids), answer.expiry)
        assert check(SECRET, claims, answer.ticket, now=1.8e9 + 1000)
        assert answer.expiry == 1.8e9 + 1000 + 600 and answer.lease_s == 30


# --- rounds ------------------------------------------------------------------------------------------------------------------------


async def test_a_repeated_round_gets_the_same_verdict() -> None:
    device = await started(Cloud())
    window = device.window(b"Thx")
    verdict = await device.draft(b"Thx")
    assert await device.handler.handle(window) == [verdict]
    assert (await device.draft(b" E")).committed_len == 8


async def test_the_round_that_ended_the_answer_may_be_repeated_until_the_session_is_closed() -> None:
    cloud = Cloud(text=b"Hi")
    device = await started(cloud)
    window = device.window((*b"Hi", EOS))
    verdict = await device.draft((*b"Hi", EOS))
    assert verdict.finish == "stop" and cloud.engine.alive == 0
    assert await device.handler.handle(window) == [verdict]
    assert (await error_of(device.handler, device.window(b"x"))).code == "round_order"
    assert (await error_of(device.handler, device.window(b"x", round=1))).code == "round_conflict"
    await device.handler.handle(frames.Close())
    assert (await error_of(device.handler, window)).code == "unknown_session"


async def test_a_round_with_other_ids_a_wrong_hash_and_a_skipped_round_are_named_and_change_nothing() -> None:
    device = await started(Cloud())
    await device.draft(b"Th")
    before = device.committed
    conflict = await error_of(device.handler, device.window(b"x", round=1))
    assert (conflict.code, conflict.round) == ("round_conflict", 1)
    assert (await error_of(device.handler, device.window(b"x", prefix_hash=b"?" * 16))).code == "prefix_hash"
    assert (await error_of(device.handler, device.window(b"x", round=9))).code == "round_order"
    assert (await error_of(device.handler, device.window(b"x", base_len=60))).code == "base_len"
    await device.draft(b" END")
    assert device.committed == (*before, *b" END ")


async def test_a_device_that_lost_a_verdict_is_told_what_is_committed() -> None:
    device = await started(Cloud())
    await device.draft(b"Th")
    (stale,) = await device.handler.handle(device.window(b"Tx", base_len=2, prefix_hash=prefix_hash(PROMPT)))
    assert isinstance(stale, frames.Stale)
    assert (stale.start, stale.ids, stale.committed_len) == (3, pack_ids(b"he"), 5)


async def test_an_id_outside_the_vocabulary_is_refused() -> None:
    device = await started(Cloud())
    error = await error_of(device.handler, device.window((1, 258)))
    assert (error.code, error.round) == ("token_id", 1)
    error = await error_of(await Cloud().greeted(), opening(ids=pack_ids([1, 258])))
    assert error.code == "token_id"


# --- opening -----------------------------------------------------------------------------------------------------------------------


async def test_differing_vocabularies_are_refused_at_the_start_with_both_fingerprints() -> None:
    cloud = Cloud()
    for frame in (opening(fingerprint="swapped"), opening(fingerprint="swapped", ids=None, messages=(frames.ChatMessage("user", "x"),))):
        error = await error_of(await cloud.greeted(), frame)
        assert error.code == "fingerprint_mismatch"
        assert "swapped" in error.message and "bytes" in error.message
    assert not cloud.engine.added


async def test_messages_are_rendered_by_the_cloud_when_the_vocabularies_are_equal() -> None:
    cloud = Cloud()
    messages = (frames.ChatMessage("Q", ""),)
    (opened,) = await (await cloud.greeted()).handle(opening(ids=None, messages=messages))
    assert isinstance(opened, frames.Opened) and cloud.engine.added[0].prompt_ids == tuple(b"Q:")
    error = await error_of(await cloud.greeted(), opening(ids=None, messages=messages, prompt_len=3))
    assert error.code == "invalid_request" and "2 tokens" in error.message


@pytest.mark.parametrize(
    "changes, code",
    [
        ({"model": "other"}, "model_not_found"),
        ({"sampling": SamplingParams(n=2)}, "invalid_request"),
        ({"sampling": SamplingParams(seed=8)}, "invalid_request"),
        ({"ids": b"", "prompt_len": 0}, "invalid_request"),
        ({"ids": pack_ids(bytes(65)), "prompt_len": 65}, "context_length_exceeded"),
        ({"sampling": SamplingParams(max_tokens=64)}, "context_length_exceeded"),
    ],
)
async def test_an_open_that_cannot_be_served_is_refused_before_the_engine_sees_it(changes: dict[str, object], code: str) -> None:
    cloud = Cloud()
    error = await error_of(await cloud.greeted(), opening(**changes))
    assert error.code == code and not cloud.engine.added
    if code == "context_length_exceeded":
        assert "65" in error.message and "64" in error.message


async def test_nothing_is_served_before_hello_but_ping() -> None:
    handler = Cloud().service.connect("key")
    assert await handler.handle(frames.Ping(5)) == [frames.Pong(5)]
    assert (await error_of(handler, opening())).code == "protocol_error"


async def test_a_device_of_another_version_is_refused_with_ours_and_the_connection_ends() -> None:
    handler = Cloud().service.connect("key")
    error = await error_of(handler, frames.Hello((2, 3), frames.Limits()))
    assert error.code == "unsupported_version" and "1" in error.message
    assert handler.closed and await handler.handle(frames.Ping()) == []


async def test_what_is_not_served_yet_says_so_and_the_session_stands() -> None:
    device = await started(Cloud())
    resume = frames.Resume(device.session, b"t" * 16, 2**31, 2, b"h" * 16)
    tree = device.window(b"xy", parents=b"\0\0")
    for frame in (resume, frames.Mode("plain"), frames.Mode("pipelined"), tree):
        assert (await error_of(device.handler, frame)).code == "unsupported"
    assert await device.handler.handle(frames.Mode("sync")) == []
    assert (await device.draft(b"The")).n_accepted == 3


async def test_one_connection_has_one_session_at_a_time_and_another_may_follow() -> None:
    cloud = Cloud()
    device = await started(cloud)
    assert (await error_of(device.handler, opening())).code == "protocol_error"
    await device.handler.handle(frames.Close())
    assert cloud.engine.alive == 0
    second = Device(device.handler, opening())
    await second.open()
    assert second.session != device.session
    assert (await error_of(device.handler, device.window(b"x"))).code == "unknown_session"


async def test_a_session_belongs_to_its_connection() -> None:
    cloud = Cloud()
    device = await started(cloud)
    stranger = await cloud.greeted("another key")
    assert (await error_of(stranger, device.window(b"x"))).code == "unknown_session"


# --- endings -----------------------------------------------------------------------------------------------------------------------


async def pending(cloud: Cloud, call: object) -> asyncio.Task:
    task = asyncio.ensure_future(call)
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    return task


@pytest.mark.parametrize("how", [lambda h: h.handle(frames.Cancel()), lambda h: h.handle(frames.Close()), lambda h: asyncio.to_thread(int)])
async def test_giving_up_while_the_engine_works_drops_the_answer_and_aborts(how) -> None:
    cloud = Cloud()
    device = await started(cloud)
    cloud.engine.hold()
    waiting = await pending(cloud, device.handler.handle(device.window(b"The")))
    queued = await pending(cloud, device.handler.handle(device.window(b"The", round=2)))
    assert await how(device.handler) in ([], 0)
    if not waiting.done():
        device.handler.close()  # the socket is gone
    assert await waiting == [] and await queued == []
    assert len(cloud.engine.aborted) == 1 and cloud.engine.alive == 0


async def test_giving_up_before_the_prompt_is_computed_aborts_it() -> None:
    cloud = Cloud(held=True)
    handler = await cloud.greeted()
    waiting = await pending(cloud, handler.handle(opening()))
    await handler.handle(frames.Cancel())
    assert await waiting == []
    assert len(cloud.engine.aborted) == 1
    cloud.engine.release()
    assert isinstance((await handler.handle(opening()))[0], frames.Opened)


async def test_giving_up_while_messages_are_rendered_opens_nothing() -> None:
    cloud = Cloud()
    handler = await cloud.greeted()
    waiting = asyncio.ensure_future(handler.handle(opening(ids=None, messages=(frames.ChatMessage("Q", ""),))))
    await asyncio.sleep(0)
    handler.close()
    assert await waiting == [] and not cloud.engine.added


async def test_a_cancelled_call_leaves_nothing_behind() -> None:
    cloud = Cloud(held=True)
    handler = await cloud.greeted()
    waiting = await pending(cloud, handler.handle(opening()))
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert cloud.engine.alive == 0


async def test_ping_is_answered_while_the_engine_works() -> None:
    cloud = Cloud()
    device = await started(cloud)
    cloud.engine.hold()
    waiting = await pending(cloud, device.handler.handle(device.window(b"The")))
    assert await device.handler.handle(frames.Ping(3)) == [frames.Pong(3)]
    cloud.engine.release()
    assert (await waiting)[0].n_accepted == 3


async def test_an_idle_session_is_closed_when_its_lease_is_over() -> None:
    cloud = Cloud()
    device = await started(cloud)
    cloud.clock.now += 29.9
    await device.handler.handle(frames.Ping())  # keeps the connection, not the lease
    assert device.handler.expire() == []
    assert device.handler.lease_left() == pytest.approx(0.1)
    cloud.clock.now += 0.1
    assert [error.code for error in device.handler.expire()] == ["lease_expired"]
    assert device.handler.closed and cloud.engine.alive == 0
    assert device.handler.expire() == []


async def test_a_draft_renews_the_lease_and_a_waiting_one_holds_it() -> None:
    cloud = Cloud()
    device = await started(cloud)
    cloud.clock.now += 20
    await device.draft(b"T")
    cloud.clock.now += 20
    assert device.handler.expire() == []
    cloud.engine.hold()
    waiting = await pending(cloud, device.handler.handle(device.window(b"h")))
    cloud.clock.now += 100
    assert device.handler.expire() == [] and device.handler.lease_left() == 30
    cloud.engine.release()
    await waiting
    assert device.handler.lease_left() == 30


async def test_a_device_may_ask_for_another_lease_within_limits() -> None:
    cloud = Cloud()
    for asked, given in ((5, 5), (0, 30), (10**6, 300)):
        handler = await cloud.greeted()
        (opened,) = await handler.handle(opening(lease_s=asked))
        assert opened.lease_s == given == handler.lease_left()


async def test_a_connection_that_opens_nothing_is_closed_too() -> None:
    cloud = Cloud()
    handler = cloud.service.connect("key")
    cloud.clock.now += 30
    assert [error.code for error in handler.expire()] == ["lease_expired"]


async def test_an_engine_that_fails_is_reported_and_the_session_is_gone() -> None:
    cloud = Cloud()
    device = await started(cloud)
    cloud.engine.fail("a kernel failed")
    error = await error_of(device.handler, device.window(b"T"))
    assert (error.code, error.message, error.round) == ("engine_failed", "a kernel failed", 1)
    assert (await error_of(device.handler, device.window(b"T"))).code == "unknown_session"


# --- limits ------------------------------------------------------------------------------------------------------------------------


async def test_a_key_has_a_limited_number_of_sessions_and_gets_them_back() -> None:
    cloud = Cloud(text=b"", limits=SpeculateLimits(sessions=2))
    first, second = await started(cloud), await started(cloud)
    assert (await error_of(await cloud.greeted(), opening())).code == "quota_exceeded"
    assert isinstance((await (await cloud.greeted("another key")).handle(opening()))[0], frames.Opened)
    first.handler.close()
    first.handler.close()
    third = await started(cloud)
    assert (await error_of(await cloud.greeted(), opening())).code == "quota_exceeded"
    assert (await third.draft()).finish == "stop"  # a finished answer holds no session
    await started(cloud)
    second.handler.close()


async def test_a_session_holds_a_place_in_the_server_until_its_answer_has_ended() -> None:
    inside = []

    @contextmanager
    def admit() -> Iterator[None]:
        if inside:
            raise Unavailable("the server is shutting down", retry_after_s=5)
        inside.append(1)
        yield
        inside.clear()

    cloud = Cloud(text=b"")
    cloud.service.admit = admit
    device = await started(cloud)
    error = await error_of(await cloud.greeted(), opening())
    assert (error.code, error.retry_after_s) == ("unavailable", 5)
    assert (await device.draft()).finish == "stop" and not inside
    await started(cloud)


async def test_frames_are_limited_per_key_and_say_when_to_come_again() -> None:
    cloud = Cloud(limits=SpeculateLimits(frames_per_s=2, frames_burst=4))
    device = await started(cloud)  # two frames
    await device.handler.handle(frames.Ping())
    await cloud.service.connect("key").handle(frames.Ping())  # another connection, the same key
    error = await error_of(device.handler, frames.Ping())
    assert (error.code, error.retry_after_s) == ("quota_exceeded", 0.5)
    cloud.clock.now += 0.5
    assert await device.handler.handle(frames.Ping(1)) == [frames.Pong(1)]


async def test_rejected_drafts_are_limited_per_key_while_plain_steps_go_on() -> None:
    cloud = Cloud(text=b"The END of it, or so it seems", limits=SpeculateLimits(wasted_per_s=1, wasted_burst=10))
    device = await started(cloud)
    assert (await device.draft(b"xxxxxxxx")).n_accepted == 0  # 8 wasted, 2 left
    error = await error_of(device.handler, device.window(b"he E"))
    assert (error.code, error.retry_after_s, error.round) == ("quota_exceeded", 2.0, 2)
    assert (await device.draft()).token == ord("h")
    cloud.clock.now += 2
    assert (await device.draft(b"e EN")).n_accepted == 4  # accepted drafts cost nothing
    assert (await device.draft(b" of ")).n_accepted == 4
    assert (await device.draft(b"t, o")).n_accepted == 4
