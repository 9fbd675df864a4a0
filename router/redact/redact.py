"""A conversation with placeholders for what was found in it, ready to be searched again and sent.

Numbers are given in the order of the text, so the same conversation and secret give the same request. What was found once is
replaced wherever it stands, also where no detector would find it again. What cannot be replaced stays, for the second search to find.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from ..message import Message, ToolCall
from ..request import RouteRequest
from .in_json import leaves_of, replace_in_json
from .mapping import RedactionMapping
from .replacer import Find, Replacer


@dataclass(frozen=True, slots=True)
class Redacted:
    request: RouteRequest
    replaced: Mapping[str, int]  # how many placeholders of each kind stand in it


def redact(request: RouteRequest, find: Find, mapping: RedactionMapping) -> Redacted:
    """Raises RedactionFailed when the mapping takes no more values. The model's name is left alone: another would be another model."""
    documents = [*request.tools, *(call.arguments for message in request.messages for call in message.tool_calls)]
    replacer = Replacer([*request.texts(), *map(leaves_of, documents)], find, mapping)
    sampling = request.sampling
    messages = tuple(_message(message, replacer) for message in request.messages)
    tools = tuple(replace_in_json(tool, replacer) for tool in request.tools)
    stop = [replacer.in_text(text) for text in sampling.stop]
    texts = [placeholder.text for placeholder, _ in mapping.entries()]
    sent = tuple(string for string in stop if not any(_cuts(string, text) for text in texts))
    if sent != sampling.stop:
        sampling = msgspec.structs.replace(sampling, stop=sent)
    return Redacted(replace(request, messages=messages, tools=tools, sampling=sampling), replacer.replaced)


def _message(message: Message, replacer: Replacer) -> Message:
    def name(text: str | None) -> str | None:
        return None if text is None else replacer.in_name(text)

    return replace(
        message,
        content=None if message.content is None else replacer.in_text(message.content),
        name=name(message.name),
        tool_call_id=name(message.tool_call_id),
        tool_calls=tuple(
            ToolCall(replacer.in_name(call.id), replacer.in_name(call.name), replace_in_json(call.arguments, replacer))
            for call in message.tool_calls
        ),
    )


def _cuts(stop: str, placeholder: str) -> bool:
    """Whether an answer that ends at `stop` could end inside the placeholder, of which nothing could be filled in then.

    Such a string is not sent. It is looked for on the device, in the text that has its values again.
    """
    stop, placeholder = stop.lower(), placeholder.lower()
    if stop == placeholder:
        return False
    parts = range(1, len(placeholder))
    return stop in placeholder or any(stop.endswith(placeholder[:n]) or stop.startswith(placeholder[n:]) for n in parts)
