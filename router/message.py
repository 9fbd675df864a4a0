"""One message of a conversation, frozen and checked when it is read; OpenAI's shape on both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import msgspec

from ..shared_protocol.errors import InvalidRequest, UnsupportedParameter

Role = Literal["system", "developer", "user", "assistant", "tool", "function"]
_ROLES: frozenset[str] = frozenset(get_args(Role))
_FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id")


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


def text_of(value: object, param: str) -> str:
    """A string that can be sent; InvalidRequest names `param` and never holds the text, not even in its context."""
    if not isinstance(value, str):
        raise InvalidRequest(f"{param} must be a string, found {type(value).__name__}", param=param)
    value = str.__str__(value)  # of a subclass, the characters that would be sent
    try:
        value.encode("utf-8")
        return value
    except UnicodeEncodeError as error:
        at = error.start
    raise InvalidRequest(f"{param} is no valid Unicode: half a surrogate pair at character {at}", param=param)


def _optional(value: object, param: str) -> str | None:
    return None if value is None else text_of(value, param)


def message_of(value: object, param: str) -> Message:
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
    for number, part in enumerate(list_of(value, param)):
        where = f"{param}.{number}"
        if isinstance(part, str):
            texts.append(text_of(part, where))
            continue
        if not isinstance(part, Mapping):
            raise InvalidRequest(f"{where} must be an object, found {type(part).__name__}", param=where)
        kind = part.get("type")
        if kind == "text":
            texts.append(text_of(part.get("text"), f"{where}.text"))
        else:
            unreadable.append(kind[:40] if isinstance(kind, str) else "unknown")
    return "\n".join(texts), tuple(unreadable)


def _tool_calls(value: object, param: str) -> tuple[ToolCall, ...]:
    return tuple(_tool_call(call, f"{param}.{number}") for number, call in enumerate(list_of(value, param)))


def _tool_call(value: object, param: str) -> ToolCall:
    function = value.get("function") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(function, Mapping):
        raise InvalidRequest(f"{param} must be an object with a function", param=param)
    return ToolCall(
        id=text_of(value.get("id"), f"{param}.id"),
        name=text_of(function.get("name"), f"{param}.function.name"),
        arguments=text_of(function.get("arguments"), f"{param}.function.arguments"),
    )


def list_of(value: object, param: str) -> Sequence[object]:
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
        raise InvalidRequest(f"{param} must be a list, found {type(value).__name__}", param=param)
    return value
