"""The whole system on one machine: a server and an engine, a device beside them, and eight prompts that take every way.

Real parts only. With one model on both sides every draft is accepted by construction, so what drafting shows then is the way, not a gain.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

from ..cloud.engine.frontend import Frontend
from ..cloud.engine.llm import LLM
from ..cloud.engine.open_engine import open_engine
from ..cloud.engine.thread_client import ThreadEngineClient
from ..cloud.server.threaded import serve_on_thread
from ..edge.client import HybridClient
from ..edge.open_runtime import RuntimeName
from ..router.policy.policy import Policy
from ..shared_protocol.errors import CloudUnreachable, RouteRefused
from ..shared_protocol.model import Model
from ..shared_protocol.openai import Drafts, Span
from ..shared_protocol.sampling import SamplingParams
from .exactness import Prompts, alone, batched, warm

SEED = 7
CONTEXT = 2048  # tokens
MAX_TOKENS = 48
CHECK_TOKENS = 16
CHUNK = 7  # tokens of a prompt in one step, for the chunked check

SIMPLE = "Which planet is known as the red planet?"
HARD = "Design and implement a lock-free queue in Rust, prove that it is linearizable, and analyse its complexity step by step."
UNCERTAIN = "Explain why the sky is blue and compare it with a sunset."
DRAFTED = "Prove that the square root of two is irrational, step by step, and explain why each step is needed."
PRIVATE = "Write a friendly reply to anna.smith@example.com: I will be ten minutes late."
PRIVATE_AND_HARD = f"My card is 4111 1111 1111 1111. {HARD}"


@dataclass(frozen=True, slots=True)
class Prompt:
    """`what` says why this prompt is shown; the quota is counted per `user`."""

    what: str
    text: str
    user: str
    private: bool = False


ONLINE = (
    Prompt("simple", SIMPLE, "ada"),
    Prompt("hard", HARD, "guest"),
    Prompt("uncertain", UNCERTAIN, "grace"),
    Prompt("drafted", DRAFTED, "alan"),
    Prompt("private", PRIVATE, "anna", private=True),
    Prompt("over quota", HARD, "guest"),
    Prompt("private and too hard", PRIVATE_AND_HARD, "anna", private=True),
)
OFFLINE = Prompt("cloud gone", HARD, "ada")


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one prompt. A refused one has no text, no tokens and no origins."""

    what: str
    prompt: str
    route: str
    reason: str
    rule: str | None
    text: str | None
    tokens: int
    seconds: float
    bytes_sent: int  # to the cloud's socket, headers and frames included
    origins: tuple[tuple[str, int], ...]  # who wrote, and how many tokens
    private: bool
    drafts: Drafts | None = None
    why: str = ""  # of a refusal

    def to_json(self) -> dict[str, object]:
        fields = {name: getattr(self, name) for name in ("prompt", "route", "reason", "rule", "text", "tokens", "seconds", "bytes_sent")}
        origins = [{"origin": origin, "tokens": tokens} for origin, tokens in self.origins]
        return {**fields, "origins": origins, "drafts": None if self.drafts is None else _acceptance(self.drafts)}


def demo_policy(model: Model) -> Policy:
    """The default policy, but drafting always, and a quota that one long answer nearly drains: the second one does not fit."""
    one_answer = len(model.render_chat([{"role": "user", "content": HARD}])) + MAX_TOKENS
    return Policy.parse(f'[speculation]\nmode = "always"\n[quota]\ncapacity = {one_answer * 3 // 2}\nrefill_per_s = 0.0\n')


def rows(edge: Model, cloud: Model, runtime: RuntimeName = "native", target: str | None = None) -> Iterator[Row]:
    """Start everything on a free loopback port, send the prompts, end the server, send the last one. `runtime` computes on the device."""

    async def open_frontend() -> Frontend:
        return Frontend(cloud, ThreadEngineClient(open_engine(cloud, max_model_len=CONTEXT, max_num_seqs=8)))

    with ExitStack() as stack:
        server = stack.enter_context(serve_on_thread(open_frontend))
        client = stack.enter_context(
            HybridClient(edge, cloud=server.url, policy=demo_policy(edge), context=CONTEXT, runtime=runtime, target=target)
        )
        for prompt in ONLINE:
            yield _ask(client, prompt)
        server.stop()
        yield _ask(client, OFFLINE)


def _ask(client: HybridClient, prompt: Prompt) -> Row:
    began, sent = time.perf_counter(), client.bytes_sent
    try:
        answer = client.chat.completions.create(
            messages=[{"role": "user", "content": prompt.text}], max_tokens=MAX_TOKENS, temperature=0, seed=SEED, user=prompt.user
        )
    except (RouteRefused, CloudUnreachable) as refusal:
        rule = refusal.rule if isinstance(refusal, RouteRefused) else None
        spent, sent = round(time.perf_counter() - began, 3), client.bytes_sent - sent
        return Row(prompt.what, prompt.text, "refuse", refusal.code, rule, None, 0, spent, sent, (), prompt.private, why=refusal.message)
    info = answer.hybrid
    assert info is not None and info.route is not None and info.reason is not None
    return Row(
        what=prompt.what,
        prompt=prompt.text,
        route=info.route,
        reason=info.reason,
        rule=info.rule,
        text=answer.choices[0].message.content,
        tokens=answer.usage.completion_tokens,
        seconds=round(time.perf_counter() - began, 3),
        bytes_sent=client.bytes_sent - sent,
        origins=_by_origin(info.spans),
        private=prompt.private,
        drafts=info.drafts,
    )


def _acceptance(drafts: Drafts) -> dict[str, object]:
    rate = drafts.accepted / drafts.proposed if drafts.proposed else None
    fields = {"rounds": drafts.rounds, "proposed": drafts.proposed, "accepted": drafts.accepted}
    return {**fields, "acceptance": None if rate is None else round(rate, 3)}


def _by_origin(spans: Sequence[Span]) -> tuple[tuple[str, int], ...]:
    """Tokens of each origin, in the order of their first appearance."""
    tokens: dict[str, int] = {}
    for span in spans:
        tokens[span.origin] = tokens.get(span.origin, 0) + span.tokens
    return tuple(tokens.items())


def checks(cloud: Model, shown: list[Row]) -> dict[str, object]:
    """Hold what was shown against a second engine in this process, and the engine's ways of computing against each other."""
    texts = {row.what: row.text for row in shown}
    prompts: Prompts = [cloud.render_chat([{"role": "user", "content": text}]) for text in (SIMPLE, UNCERTAIN, DRAFTED)]
    params = SamplingParams(temperature=0.8, seed=SEED, max_tokens=CHECK_TOKENS)
    with closing(LLM(cloud, max_model_len=CONTEXT)) as llm:
        plain = alone(llm, prompts, params)
        equal = {"cold_equals_warm": plain == warm(llm, prompts, params), "batched_equals_single": plain == batched(llm, prompts, params)}
        greedy = SamplingParams(temperature=0, seed=SEED, max_tokens=MAX_TOKENS)
        of_the_cloud = llm.chat([{"role": "user", "content": DRAFTED}], greedy)[0].text
    with closing(LLM(cloud, max_model_len=CONTEXT, long_prefill_token_threshold=CHUNK)) as llm:
        equal["chunked_equals_whole"] = plain == batched(llm, prompts, params)
    return {
        "speculative_equals_cloud": texts["drafted"] == of_the_cloud,
        "private_bytes_sent": sum(row.bytes_sent for row in shown if row.private),
        **equal,
    }
