"""What a routing decision is made from: the request, immutable and checked when it is made, and the facts around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

import msgspec

from ..shared_protocol.errors import InvalidRequest, UnsupportedParameter
from ..shared_protocol.runtime import DeviceState, LinkState
from ..shared_protocol.sampling import SamplingParams
from .costs import CostModel
from .plan import SpeculationFacts
from .policy import Policy
from .quota import QuotaView
from .verdict import Verdict

Role = Literal["system", "developer", "user", "assistant", "tool", "function"]
_ROLES: frozenset[str] = frozenset(get_args(Role))
_FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id")
MAX_MESSAGES = 10_000


@dataclass(frozen=True, slots=True, repr=False)
class ToolCall:
    """A call that the assistant made in an earlier turn; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str

    def to_openai(self) -> dict[str, Any]:
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


@dataclass(frozen=True, slots=True, repr=False)
class Message:
    """One turn. The text parts of a content list are joined by newlines: this string is what is searched, and what is sent.

    `unreadable` names the types of content parts that hold no text (images, audio): no detector can judge them, so a
    conversation with one never leaves the device.
    """

    role: Role
    content: str | None = None
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    unreadable: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Message(role={self.role!r}, {len(self.content or '')} characters)"

    def to_openai(self) -> dict[str, Any]:
        """The message as OpenAI's API writes it. Raises UnsupportedParameter when it had parts that are not text."""
        if self.unreadable:
            raise UnsupportedParameter("only text content is served", param="messages", hint="send text parts only")
        message: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.name is not None:
            message["name"] = self.name
        if self.tool_calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.tool_calls
            ]
        if self.tool_call_id is not None:
            message["tool_call_id"] = self.tool_call_id
        return message


@dataclass(frozen=True, slots=True, repr=False)
class RouteRequest:
    """All of a request that may hold words of the user. Nothing in it can change after privacy has judged it.

    `user` names the quota's bucket; it is not part of what is sent.
    """

    messages: tuple[Message, ...]
    user: str = "local"
    sampling: SamplingParams = field(default_factory=SamplingParams)
    tools: tuple[str, ...] = ()  # each the JSON text of one tool

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
    ) -> RouteRequest:
        """Check and freeze messages in OpenAI's shape; a bare string is one user message.

        `max_tokens` is a short form of `SamplingParams(max_tokens=...)`. Raises InvalidRequest naming the field, never its text.
        """
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        if not isinstance(messages, Sequence) or isinstance(messages, bytes | bytearray):
            raise InvalidRequest("messages must be a list", param="messages")
        if not 0 < len(messages) <= MAX_MESSAGES:
            raise InvalidRequest(f"messages must hold 1 to {MAX_MESSAGES} messages, found {len(messages)}", param="messages")
        if not isinstance(user, str) or not 0 < len(user) <= 256:
            raise InvalidRequest("user must be a string of 1 to 256 characters", param="user")
        if max_tokens is not None:
            sampling = msgspec.structs.replace(sampling or SamplingParams(), max_tokens=max_tokens)
        sampling = sampling or SamplingParams()
        for number, stop in enumerate(sampling.stop):
            _text(stop, f"stop.{number}")
        return cls(
            messages=tuple(_message(m, f"messages.{i}") for i, m in enumerate(messages)),
            user=_text(user, "user"),
            sampling=sampling,
            tools=_tools(tools),
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
        """Every string that would be sent, tool calls, tools and stop strings included."""
        for message in self.messages:
            yield message.content or ""
            yield from filter(None, (message.name, message.tool_call_id))
            for call in message.tool_calls:
                yield from (call.id, call.name, "\n".join(_leaves(call.arguments)))
        for tool in self.tools:
            yield "\n".join(_leaves(tool))
        yield from self.sampling.stop

    def to_openai(self) -> list[dict[str, Any]]:
        return [message.to_openai() for message in self.messages]


TokenCounter = Callable[[RouteRequest], int]  # prompt tokens, template included


@dataclass(frozen=True, slots=True)
class RouteContext:
    """All that a decision may depend on besides the request. It is data: deciding reads no clock and no network."""

    policy: Policy = field(default_factory=Policy.default)
    device: DeviceState = field(default_factory=DeviceState)
    link: LinkState = field(default_factory=LinkState)
    quota: QuotaView = field(default_factory=QuotaView)
    count_tokens: TokenCounter | None = None  # None: tokens are estimated, and the decision says so
    privacy_floor: Verdict = "public"  # the strictest verdict of this conversation so far
    costs: CostModel = field(default_factory=CostModel)
    speculation: SpeculationFacts | None = None  # None: device and cloud cannot speculate together


def _text(value: object, param: str) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"{param} must be a string, found {type(value).__name__}", param=param)
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"{param} is no valid Unicode: half a surrogate pair at character {error.start}", param=param) from None
    return str(value)


def _optional(value: object, param: str) -> str | None:
    return None if value is None else _text(value, param)


def _message(value: object, param: str) -> Message:
    if isinstance(value, Message):
        return value
    if isinstance(value, msgspec.Struct):  # an answer of ours, appended to the history
        value = msgspec.structs.asdict(value)
    elif hasattr(value, "model_dump"):  # one of the openai client
        value = value.model_dump()
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{param} must be an object, found {type(value).__name__}", param=param)
    for key, field_value in value.items():
        if key not in _FIELDS and field_value not in (None, [], {}, "", False):
            raise UnsupportedParameter(f"{param} holds a field that is not served", param=param, hint=f"known: {', '.join(_FIELDS)}")
    role = value.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise InvalidRequest(f"{param}.role must be one of {', '.join(sorted(_ROLES))}", param=f"{param}.role")
    content, unreadable = _content(value.get("content"), f"{param}.content")
    return Message(
        role=cast(Role, role),
        content=content,
        name=_optional(value.get("name"), f"{param}.name"),
        tool_calls=_tool_calls(value.get("tool_calls"), f"{param}.tool_calls"),
        tool_call_id=_optional(value.get("tool_call_id"), f"{param}.tool_call_id"),
        unreadable=unreadable,
    )


def _content(value: object, param: str) -> tuple[str | None, tuple[str, ...]]:
    """Joined text parts, and the types of the parts that are not text."""
    if value is None or isinstance(value, str):
        return _optional(value, param), ()
    texts: list[str] = []
    unreadable: list[str] = []
    for number, part in enumerate(_list(value, param)):
        where = f"{param}.{number}"
        if isinstance(part, str):
            texts.append(_text(part, where))
            continue
        if not isinstance(part, Mapping):
            raise InvalidRequest(f"{where} must be an object, found {type(part).__name__}", param=where)
        kind = part.get("type")
        if kind == "text":
            texts.append(_text(part.get("text"), f"{where}.text"))
        else:
            unreadable.append(kind[:40] if isinstance(kind, str) else "unknown")
    return "\n".join(texts), tuple(unreadable)


def _tool_calls(value: object, param: str) -> tuple[ToolCall, ...]:
    return tuple(_tool_call(call, f"{param}.{number}") for number, call in enumerate(_list(value, param)))


def _tool_call(value: object, param: str) -> ToolCall:
    function = value.get("function") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(function, Mapping):
        raise InvalidRequest(f"{param} must be an object with a function", param=param)
    return ToolCall(
        id=_text(value.get("id"), f"{param}.id"),
        name=_text(function.get("name"), f"{param}.function.name"),
        arguments=_text(function.get("arguments"), f"{param}.function.arguments"),
    )


def _list(value: object, param: str) -> Sequence[object]:
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
        raise InvalidRequest(f"{param} must be a list, found {type(value).__name__}", param=param)
    return value


def _tools(value: object) -> tuple[str, ...]:
    tools = []
    for number, tool in enumerate(_list(value, "tools")):
        try:
            tools.append(_text(tool if isinstance(tool, str) else msgspec.json.encode(tool).decode(), f"tools.{number}"))
        except (TypeError, ValueError, RecursionError):
            raise InvalidRequest(f"tools.{number} is no JSON value", param=f"tools.{number}") from None
    return tuple(tools)


def _leaves(text: str) -> Iterator[str]:
    """The strings and numbers inside a JSON text, unescaped; the text itself when it is no JSON."""
    try:
        pending: list[object] = [msgspec.json.decode(text)]
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        yield text
        return
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            pending += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            pending += value
        elif isinstance(value, str | int | float):
            yield str(value)
