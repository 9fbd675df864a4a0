"""The cloud's side of a drafted answer, frame by frame, over a target that says a given text."""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace

from hybrid.cloud.engine.frontend import Frontend
from hybrid.cloud.server.speculate.handler import SpeculateHandler, SpeculateService
from hybrid.cloud.server.speculate.limits import SpeculateLimits
from hybrid.shared_protocol import frames
from hybrid.shared_protocol.model_card import ModelCard
from hybrid.tests.support.byte_tokenizer import EOS, ByteTokenizer
from hybrid.tests.support.drafting import Device, opening
from hybrid.tests.support.remote_engine import RemoteEngine

CARD = ModelCard("toy", "toy", "F32", 0, 64, 258, "bytes", "toy-hash", 0, "Apache-2.0", vocabulary="bytes")
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


async def pending(cloud: Cloud, call: object) -> asyncio.Task:
    task = asyncio.ensure_future(call)
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    return task
