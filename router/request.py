"""What a routing decision is made from: the request, immutable and checked when it is made, and the facts around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ..shared_protocol.errors import InvalidRequest
from ..shared_protocol.runtime import DeviceState, LinkState
from ..shared_protocol.sampling import SamplingParams
from .costs import CostModel
from .message import Message, list_of, message_of, text_of
from .plan import SpeculationFacts
from .policy.policy import Policy
from .quota import QuotaView
from .redact.mapping import RedactionMapping
from .verdict import Verdict

MAX_MESSAGES = 10_000


@dataclass(frozen=True, slots=True, repr=False)
class RouteRequest:
    """All of a request that may hold words of the user. Nothing in it can change after privacy has judged it.

    `user` and `tenant` name the quota's buckets; they are not part of what is sent.
    """

    messages: tuple[Message, ...]
    user: str = "local"
    sampling: SamplingParams = field(default_factory=SamplingParams)
    tools: tuple[str, ...] = ()  # each the JSON text of one tool
    model: str | None = None  # what the cloud is asked for; None: its own first
    tenant: str | None = None  # whose user asks; None: nobody's

    def __repr__(self) -> str:
        return f"RouteRequest({len(self.messages)} messages, {self.num_bytes} bytes)"

    @classmethod
    def of(
        cls,
        messages: object,
        *,
        max_tokens: int | None = None,
        user: str = "local",
        sampling: SamplingParams | None = None,
        tools: object = (),
        model: str | None = None,
        tenant: str | None = None,
    ) -> RouteRequest:
        """Check and freeze messages in OpenAI's shape; a bare string is one user message.

        `max_tokens` is a short form of `SamplingParams(max_tokens=...)`. Raises InvalidRequest naming the field, never its text.
        """
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        if not isinstance(messages, Sequence) or isinstance(messages, bytes | bytearray):
            raise InvalidRequest(f"messages must be a list, found {type(messages).__name__}", param="messages")
        if not 0 < len(messages) <= MAX_MESSAGES:
            raise InvalidRequest(f"messages must hold 1 to {MAX_MESSAGES} messages, found {len(messages)}", param="messages")
        for name, value in (("user", user), ("tenant", tenant)):
            if (value is not None or name == "user") and not (isinstance(value, str) and 0 < len(value) <= 256):
                raise InvalidRequest(f"{name} must be a string of 1 to 256 characters", param=name)
        if max_tokens is not None:
            sampling = msgspec.structs.replace(sampling or SamplingParams(), max_tokens=max_tokens)
        sampling = sampling or SamplingParams()
        stop = tuple(text_of(text, f"stop.{number}") for number, text in enumerate(sampling.stop))
        if stop != sampling.stop:  # a list could still change
            sampling = msgspec.structs.replace(sampling, stop=stop)
        return cls(
            messages=tuple(message_of(m, f"messages.{i}") for i, m in enumerate(messages)),
            user=text_of(user, "user"),
            sampling=sampling,
            tools=_tools(tools),
            model=None if model is None else text_of(model, "model"),
            tenant=None if tenant is None else text_of(tenant, "tenant"),
        )

    @property
    def max_tokens(self) -> int | None:
        return self.sampling.max_tokens

    @property
    def num_bytes(self) -> int:
        """UTF-8 bytes of all texts."""
        return sum(len(text.encode("utf-8", "surrogatepass")) for text in self.texts())

    @property
    def unreadable(self) -> tuple[str, ...]:
        return tuple(kind for message in self.messages for kind in message.unreadable)

    def texts(self) -> Iterator[str]:
        """Every string that would be sent, tool calls, tools, stop strings and the model's name included."""
        for message in self.messages:
            yield message.content or ""
            yield from filter(None, (message.name, message.tool_call_id))
            for call in message.tool_calls:
                leaves = _leaves(call.arguments)  # unescaped; a key that occurs twice is sent twice, but decoded once
                yield from (call.id, call.name, "\n".join(leaves), *(() if leaves == [call.arguments] else (call.arguments,)))
        for tool in self.tools:
            yield "\n".join(_leaves(tool))
        yield from self.sampling.stop
        if self.model is not None:
            yield self.model

    def readings(self) -> Iterator[str]:
        """What the texts say to whoever takes them for JSON, where that is something else: results of tools, arguments that break off,
        strings inside of strings."""
        for text in self.texts():
            if "\\" in text and (reading := unescaped(text)) != text:
                yield reading

    def to_openai(self) -> list[dict[str, Any]]:
        return [message.to_openai() for message in self.messages]


TokenCounter = Callable[[RouteRequest], int]  # prompt tokens, template included


@dataclass(frozen=True, slots=True)
class Moment:
    """Local time, as rules see it."""

    hour: int  # 0..23
    weekday: int  # 1 Monday .. 7 Sunday


@dataclass(frozen=True, slots=True)
class RouteContext:
    """All that a decision may depend on besides the request. It is data: deciding reads no clock and no network."""

    policy: Policy = field(default_factory=Policy.default)
    device: DeviceState = field(default_factory=DeviceState)
    link: LinkState = field(default_factory=LinkState)
    quota: QuotaView = field(default_factory=QuotaView)
    rejected: QuotaView = field(default_factory=QuotaView)  # drafted tokens that the cloud may still reject
    count_tokens: TokenCounter | None = None  # None: tokens are estimated, and the decision says so
    privacy_floor: Verdict = "public"  # the strictest verdict of this conversation so far
    costs: CostModel = field(default_factory=CostModel)
    speculation: SpeculationFacts | None = None  # None: device and cloud cannot speculate together
    moment: Moment | None = None  # None: no rule knows the time
    edge_model: str | None = None  # by name; None: not known
    cloud_model: str | None = None  # as it is asked for; None: the cloud's own choice
    redaction: RedactionMapping | None = None  # of this conversation; None: what would have to be redacted stays on the device


_ESCAPE = re.compile(r'(?<!\\)\\+(?:u([0-9A-Fa-f]{4})|([nrt"/]))')  # escaped however often; a run is tried once
_WRITTEN = {"n": "\n", "r": "\r", "t": "\t"}


def unescaped(text: str) -> str:
    """`text` with JSON's escapes undone wherever they stand. Linear, and never longer than `text`."""
    plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else _WRITTEN.get(found[2], found[2]), text)
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")  # two halves of a pair are one character


def _tools(value: object) -> tuple[str, ...]:
    tools = []
    for number, tool in enumerate(list_of(value, "tools")):
        try:
            tools.append(text_of(tool if isinstance(tool, str) else msgspec.json.encode(tool).decode(), f"tools.{number}"))
        except (TypeError, ValueError, RecursionError):
            raise InvalidRequest(f"tools.{number} is no JSON value", param=f"tools.{number}") from None
    return tuple(tools)


def _leaves(text: str) -> list[str]:
    """The strings and numbers inside a JSON text, unescaped; the text itself when it is no JSON."""
    try:
        pending: list[object] = [msgspec.json.decode(text)]
        leaves: list[str] = []
        while pending:
            value = pending.pop()
            if isinstance(value, Mapping):
                pending += [*value.keys(), *value.values()]
            elif isinstance(value, list):
                pending += value
            elif isinstance(value, str | int | float):
                leaves.append(str(value))
    except (msgspec.DecodeError, RecursionError, ValueError):
        return [text]
    return leaves
