"""Drives an engine in tests as its transports do."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from hybrid.cloud.engine.engine import Engine
from hybrid.cloud.engine.messages import Add, Draft, StepOutput
from hybrid.cloud.engine.scheduler import Limits
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.shared_protocol.verify import prefix_hash
from hybrid.tests.support.hash_executor import EOS, VOCAB, HashExecutor, continuation

GREEDY = SamplingParams(temperature=0, max_tokens=12)
DRAWN = SamplingParams(temperature=0.8, max_tokens=12)


def engine_of(blocks: int = 64, *, executor: HashExecutor | None = None, max_model_len: int = 10**6, **limits: int) -> Engine:
    """An engine over the hash model; blocks of 4."""
    return Engine(executor or HashExecutor(blocks + 1), eos_ids={EOS}, max_model_len=max_model_len, limits=Limits(**limits))


def add_of(name: str, prompt: Sequence[int], params: SamplingParams = GREEDY, *, seed: int = 1, **kw) -> Add:
    return Add(name, tuple(prompt), params, seed, **kw)


def prompts_of(count: int, length: int = 9, seed: int = 0) -> list[tuple[int, ...]]:
    """Prompts of which neighbours share their first half."""
    source = random.Random(seed)
    heads = [[source.randrange(1, 40) for _ in range(length // 2)] for _ in range((count + 1) // 2)]
    return [(*heads[i // 2], *(source.randrange(1, 40) for _ in range(length - length // 2))) for i in range(count)]


def collect(engine: Engine, into: dict[str, list[StepOutput]] | None = None) -> dict[str, list[StepOutput]]:
    """Step until nothing is left to do."""
    outputs = {} if into is None else into
    for _ in range(10_000):
        if not engine.has_work:
            return outputs
        for output in engine.step():
            outputs.setdefault(output.request_id, []).append(output)
    raise AssertionError("the engine never ends")


def ids_of(outputs: Sequence[StepOutput]) -> tuple[int, ...]:
    return tuple(token for output in outputs for token in output.new_ids)


def answers(engine: Engine, adds: Sequence[Add]) -> list[tuple[int, ...]]:
    """What the engine says to each, asked all at once; at the end the books must balance."""
    for add in adds:
        engine.add(add)
    outputs = collect(engine)
    for said in outputs.values():
        assert [o.finish_reason is not None for o in said] == [False] * (len(said) - 1) + [True]
    engine.check_idle()
    return [ids_of(outputs[add.request_id]) for add in adds]


@dataclass
class Device:
    """Drafts for one remote request, right but for a share of `corruption`; checks every verdict against its own books."""

    engine: Engine
    add: Add
    k: int
    corruption: float
    source: random.Random
    committed: list[int] = field(default_factory=list)
    round: int = 0
    window: tuple[int, ...] = ()
    finish: str | None = None

    def start(self) -> None:
        self.committed = list(self.add.prompt_ids)
        self.engine.add(self.add)

    def take(self, output: StepOutput) -> None:
        """Note an output; send the next window when it parks."""
        if output.answer is not None:
            verdict, base = output.answer, len(self.committed)
            assert (verdict.round, verdict.committed_len) == (self.round, base + len(output.new_ids))
            accepted = self.window[: verdict.n_accepted]
            assert output.new_ids == (accepted if verdict.token is None else (*accepted, verdict.token))
            assert len(output.logprobs) == (0 if self.add.params.logprobs is None else len(output.new_ids))
        self.committed += output.new_ids
        self.finish = output.finish_reason
        if output.parked:
            self.send()

    def send(self) -> None:
        params = SamplingParams(temperature=self.add.params.temperature, max_tokens=max(self.k, 1), ignore_eos=True)
        true = continuation(self.committed, params, self.add.seed)[: self.k]
        self.window = tuple(self.source.randrange(VOCAB - 1) if self.source.random() < self.corruption else token for token in true)
        self.round += 1
        self.engine.draft(self.draft())

    def draft(self) -> Draft:
        return Draft(self.add.request_id, self.round, len(self.committed), prefix_hash(self.committed), self.window)


def drafted(devices: Sequence[Device]) -> list[tuple[int, ...]]:
    """What each device holds when all have ended."""
    by_name = {device.add.request_id: device for device in devices}
    for device in devices:
        device.start()
    for _ in range(10_000):
        if all(device.finish for device in devices):
            break
        for output in devices[0].engine.step():
            by_name[output.request_id].take(output)
    devices[0].engine.check_idle()
    return [tuple(device.committed[len(device.add.prompt_ids) :]) for device in devices]
