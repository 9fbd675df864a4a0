"""The cloud's side of `/v1/speculate`, without its transport: a device's frames in, the cloud's frames out.

Hello -> Open -> Draft ... -> Close, one session at a time on a connection. Open and Draft wait for the engine; Cancel, Close and Ping
are answered while they do. Every failure is an Error frame; only what leaves no common ground ends the connection (`closed`).
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext

from ....shared_protocol import frames
from ....shared_protocol.errors import FingerprintMismatch, HybridError, InvalidRequest, ModelNotFound, ProtocolError
from ....shared_protocol.frames import CloudFrame, DeviceFrame, unpack_ids
from ...engine.frontend import Frontend, check_prompt
from ...engine.messages import Add
from ...engine.request import resolve_max_tokens
from ..metrics import Metrics
from .limits import KeyMeter, SpeculateLimits
from .live import LiveSession
from .session import Opening, SpeculateSession

Hold = Callable[[str, int, int | None, Callable[[], int]], AbstractContextManager[None]]
MAX_MESSAGE = 500  # characters of an error


class SpeculateService:
    """What all connections share. `secret` signs tickets; `monotonic` times leases and limits, `wall` dates tickets.

    `admit` is entered while a session is open: a server that drains refuses there, and waits for those inside. `hold` takes the tokens of
    a session from its key's quota meanwhile: the key, those of the prompt and of the answer, and what it was in the end.
    """

    def __init__(
        self,
        frontend: Frontend,
        *,
        secret: bytes,
        limits: SpeculateLimits | None = None,
        model_id: str | None = None,
        metrics: Metrics | None = None,
        admit: Callable[[], AbstractContextManager[None]] = nullcontext,
        hold: Hold = lambda key_id, prompt, output, used: nullcontext(),
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self.frontend = frontend
        self.secret = secret
        self.limits = limits or SpeculateLimits()
        self.model_id = model_id or frontend.model.card.name
        self.metrics = metrics or Metrics(frontend.client.stats, self.model_id)
        self.admit = admit
        self.hold = hold
        self.monotonic = monotonic
        self.wall = wall
        self.random_bytes = random_bytes
        self._meters: dict[str, KeyMeter] = {}

    def connect(self, key_id: str) -> SpeculateHandler:
        """A handler for one connection of an authenticated key."""
        meter = self._meters.setdefault(key_id, KeyMeter(self.limits, self.monotonic()))
        return SpeculateHandler(self, key_id, meter)


class SpeculateHandler:
    """One connection. `handle` may be called again while an earlier call waits; drafts are taken one after the other."""

    def __init__(self, service: SpeculateService, key_id: str, meter: KeyMeter) -> None:
        self.closed = False  # nothing more is to be said on this connection
        self._service = service
        self._key_id = key_id
        self._meter = meter
        self._greeted = False
        self._live: LiveSession | None = None
        self._given_up = 0  # times that the device gave up what it had asked for
        self._turn = asyncio.Lock()
        self._busy = 0  # calls that wait for the engine
        self._idle_since = service.monotonic()

    async def handle(self, frame: DeviceFrame) -> list[CloudFrame]:
        """The frames that answer `frame`; none once the connection is closed."""
        if self.closed:
            return []
        try:
            self._meter.take_frame(self._service.monotonic())
            return await self._dispatch(frame)
        except HybridError as error:
            return [error_frame(error, frame.round if isinstance(frame, frames.Draft) else None)]

    def lease_left(self) -> float:
        """Seconds until `expire` has something to do."""
        lease = self._service.limits.lease_s if self._live is None else self._live.session.opening.lease_s
        return float(lease) if self._busy else self._idle_since + lease - self._service.monotonic()

    def expire(self) -> list[CloudFrame]:
        """End a connection that has been idle for its lease; the frames to say so."""
        if self.closed or self.lease_left() > 0:
            return []
        self.close()
        return [frames.Error("lease_expired", "nothing came for as long as the lease; open a new session")]

    def close(self) -> None:
        """The device is gone, or wants no more: what it had in the engine is aborted. May be called again."""
        self.closed = True
        self._give_up()

    async def _dispatch(self, frame: DeviceFrame) -> list[CloudFrame]:
        if not isinstance(frame, frames.Hello | frames.Ping) and not self._greeted:
            raise ProtocolError("Hello comes first")
        match frame:
            case frames.Ping():
                return [frames.Pong(frame.nonce)]
            case frames.Hello():
                return self._hello(frame)
            case frames.Open():
                return await self._open(frame)
            case frames.Draft():
                return await self._draft(frame)
            case frames.Cancel() | frames.Close():
                self._give_up()
                return []
            case frames.Mode():
                if frame.mode == "sync":
                    return []
                raise ProtocolError(f"the mode {frame.mode} is not served; sync is", code="unsupported")
            case frames.Resume():
                raise ProtocolError("sessions cannot be resumed here; open a new one", code="unsupported")

    def _hello(self, hello: frames.Hello) -> list[CloudFrame]:
        if frames.VERSION not in hello.versions:
            self.close()
            raise ProtocolError(f"this server speaks version {frames.VERSION} of the protocol only", code="unsupported_version")
        self._greeted = True
        self._idle_since = self._service.monotonic()
        return [frames.CloudHello(frames.VERSION, frames.Limits())]

    async def _open(self, frame: frames.Open) -> list[CloudFrame]:
        before = self._given_up
        async with self._waiting():
            if self._live is not None and not self._live.lost and self._live.session.finish is None:
                raise ProtocolError("a session is open on this connection; close it first")
            service, client = self._service, self._service.frontend.client
            add, opening = await self._admit(frame)
            if self._given_up != before:
                return []
            self._end()
            session = SpeculateSession(opening, service.frontend.model.tokenizer, service.secret)
            held = self._held(session)
            self._live = live = LiveSession(session, add, client, self._meter, service.monotonic, held, service.metrics)
            return _some(await live.opened(service.wall))

    def _held(self, session: SpeculateSession) -> Callable[[], AbstractContextManager[None]]:
        """A place in the server and the session's tokens, while it is open."""
        service, opening = self._service, session.opening

        @contextmanager
        def held() -> Iterator[None]:
            tokens = service.hold(self._key_id, len(opening.prompt_ids), opening.sampling.max_tokens, lambda: session.committed_len)
            with service.admit(), tokens:
                yield

        return held

    async def _admit(self, frame: frames.Open) -> tuple[Add, Opening]:
        """Check an Open against model, limits and vocabulary; what the engine and the session need of it."""
        service, client, model = self._service, self._service.frontend.client, self._service.frontend.model
        if frame.model != service.model_id:
            raise ModelNotFound(f"the model {frame.model!r} is not served here", hint=f"ask for {service.model_id!r}")
        expected = model.card.vocabulary if frame.ids is None else model.card.fingerprint
        if frame.fingerprint != expected:
            raise FingerprintMismatch(
                f"the device's {'vocabulary' if frame.ids is None else 'vocabulary and template'} {frame.fingerprint} is not the cloud's, "
                f"{expected}",
                hint="send messages if only the template is another one; drafting across vocabularies is not served",
            )
        sampling = frame.sampling
        if sampling.n != 1:
            raise InvalidRequest(f"a drafted answer has one choice, {sampling.n} were asked for", param="sampling.n")
        if sampling.seed not in (None, frame.seed):
            raise InvalidRequest("sampling.seed and seed differ", param="sampling.seed")
        prompt_ids = await self._prompt_ids(frame)
        check_prompt(prompt_ids, model.tokenizer.vocab_size)
        resolve_max_tokens(len(prompt_ids), sampling.max_tokens, client.max_model_len)
        opening = Opening(
            session_id=service.random_bytes(16),
            request_id=f"speculate-{service.random_bytes(8).hex()}",
            key_id=self._key_id,
            model_hash=model.card.file_hash,
            kernel_id=client.kernel_id,
            seed=frame.seed,
            sampling=sampling,
            prompt_ids=prompt_ids,
            lease_s=min(frame.lease_s or service.limits.lease_s, service.limits.max_lease_s),
            ticket_s=service.limits.ticket_s,
        )
        return Add(opening.request_id, prompt_ids, sampling, frame.seed, cache_salt=self._key_id, remote=True), opening

    async def _prompt_ids(self, frame: frames.Open) -> tuple[int, ...]:
        if frame.ids is not None:
            return unpack_ids(frame.ids, self._service.frontend.model.tokenizer.vocab_size)
        messages = [{"role": message.role, "content": message.content} for message in frame.messages or ()]
        ids = tuple(await self._service.frontend.render(messages))
        if len(ids) != frame.prompt_len:
            raise InvalidRequest(f"the messages render to {len(ids)} tokens, prompt_len says {frame.prompt_len}", param="prompt_len")
        return ids

    async def _draft(self, frame: frames.Draft) -> list[CloudFrame]:
        live, before = self._live, self._given_up
        if live is None or live.lost or frame.session != live.session.opening.session_id:
            raise ProtocolError("no such session is open on this connection", code="unknown_session")
        if frame.parents is not None:
            raise ProtocolError("trees of drafts are not served", code="unsupported")
        ids = unpack_ids(frame.ids, self._service.frontend.model.tokenizer.vocab_size)
        async with self._waiting():
            if self._given_up != before:
                return []
            return _some(await live.answer(frame, ids, self._service.wall))

    def _give_up(self) -> None:
        self._given_up += 1
        self._end()

    def _end(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.end()

    @asynccontextmanager
    async def _waiting(self) -> AsyncIterator[None]:
        """One call at a time asks the engine; the lease rests meanwhile."""
        self._busy += 1
        try:
            async with self._turn:
                yield
        finally:
            self._busy -= 1
            self._idle_since = self._service.monotonic()


def error_frame(error: HybridError, round_: int | None = None) -> frames.Error:
    """What a device is told about an error, at any length of message."""
    return frames.Error(error.code, str(error)[:MAX_MESSAGE], round_, error.retry_after_s)


def _some(frame: CloudFrame | None) -> list[CloudFrame]:
    return [] if frame is None else [frame]
