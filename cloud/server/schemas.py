"""What clients may send, as pydantic checks it at the HTTP edge. Types are strict: "5" is no number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ...shared_protocol.errors import InvalidRequest, UnsupportedParameter
from ...shared_protocol.sampling import MAX_LOGPROBS
from .unserved import CHAT_UNSERVED, COMPLETION_UNSERVED, MESSAGE_UNSERVED, SILENT, refuse

MAX_MESSAGES = 10_000
MAX_PARTS = 10_000  # of one message
MAX_PROMPTS = 10_000  # looked at; the server's own limit is far below
Text = Annotated[str, Field(max_length=8 * 1024 * 1024)]
Ids = Annotated[list[Annotated[int, Field(ge=0, lt=2**31)]], Field(fail_fast=True)]


class _Lenient(BaseModel):
    """Keeps unknown fields, so that the answer can name them."""

    model_config = ConfigDict(extra="allow", strict=True, hide_input_in_errors=True)

    def unknown(self) -> Iterator[str]:
        """Names of unknown fields that hold something."""
        for name, value in (self.model_extra or {}).items():
            if value is not None and value != [] and name not in SILENT:
                yield name


class RequestBody(_Lenient):
    UNSERVED: ClassVar[Mapping[str, tuple[Any, ...]]] = {}

    model: str | None = None

    @classmethod
    def refuse_unserved(cls, fields: Mapping[str, Any]) -> None:
        """Raise UnsupportedParameter for a known field that is not served yet and would change the answer."""
        refuse(fields, cls.UNSERVED)

    def ignored(self) -> Iterator[str]:
        """Dotted names of fields without effect."""
        yield from (name for name in self.unknown() if name not in self.UNSERVED)


class StreamOptions(_Lenient):
    include_usage: bool | None = None


class Generating(RequestBody):
    """The fields that all generating routes share. Ranges that the sampler knows are checked there."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    n: int | None = None
    stop: str | Annotated[list[str], Field(fail_fast=True)] | None = None
    stop_token_ids: Ids | None = None
    ignore_eos: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    cache_salt: Annotated[str, Field(min_length=1, max_length=128)] | None = None

    @model_validator(mode="after")
    def _options_need_a_stream(self) -> Self:
        if self.stream_options is not None and not self.stream:
            raise InvalidRequest("stream_options is only allowed with stream: true", param="stream_options")
        return self

    @property
    def include_usage(self) -> bool:
        return self.stream_options is not None and bool(self.stream_options.include_usage)

    def ignored(self) -> Iterator[str]:
        yield from super().ignored()
        if self.stream_options is not None:
            yield from (f"stream_options.{name}" for name in self.stream_options.unknown())


class TextPart(_Lenient):
    type: Literal["text"]
    text: Text


class ChatMessage(_Lenient):
    role: Literal["system", "developer", "user", "assistant"]
    content: Text | Annotated[list[TextPart], Field(fail_fast=True, min_length=1, max_length=MAX_PARTS)]
    name: str | None = None

    def for_template(self) -> dict[str, str]:
        """The message as chat templates read it: `developer` is their `system`, parts of text are joined by line ends."""
        content = self.content if isinstance(self.content, str) else "\n".join(part.text for part in self.content)
        message = {"role": "system" if self.role == "developer" else self.role, "content": content}
        return message | ({"name": self.name} if self.name is not None else {})


Messages = Annotated[list[ChatMessage], Field(fail_fast=True, min_length=1, max_length=MAX_MESSAGES)]


def refuse_unserved_messages(messages: object) -> None:
    """Name what is not served in conversations before pydantic calls it a wrong type."""
    for index, message in enumerate(islice(messages, MAX_MESSAGES) if isinstance(messages, list) else ()):
        if not isinstance(message, dict):
            continue
        refuse(message, MESSAGE_UNSERVED, prefix=f"messages.{index}.")
        if message.get("role") in ("tool", "function"):
            raise UnsupportedParameter("messages of tools are not served yet", param=f"messages.{index}.role")
        parts = message.get("content")
        for part_index, part in enumerate(islice(parts, MAX_PARTS) if isinstance(parts, list) else ()):
            if isinstance(part, dict) and part.get("type") in ("image_url", "input_audio", "file", "refusal"):
                where = f"messages.{index}.content.{part_index}.type"
                raise UnsupportedParameter(f"parts of type {part['type']} are not served yet", param=where, hint="send text")


class ChatRequest(Generating):
    UNSERVED = CHAT_UNSERVED

    messages: Messages
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MAX_LOGPROBS)] | None = None

    @classmethod
    def refuse_unserved(cls, fields: Mapping[str, Any]) -> None:
        super().refuse_unserved(fields)
        refuse_unserved_messages(fields.get("messages"))

    @model_validator(mode="after")
    def _top_needs_logprobs(self) -> Self:
        if self.top_logprobs and not self.logprobs:
            raise InvalidRequest("top_logprobs is only allowed with logprobs: true", param="top_logprobs")
        return self

    def ignored(self) -> Iterator[str]:
        yield from super().ignored()
        for message in self.messages:
            yield from (f"messages.{name}" for name in message.unknown() if name not in MESSAGE_UNSERVED)


class CompletionRequest(Generating):
    UNSERVED = COMPLETION_UNSERVED

    prompt: (
        Text
        | Annotated[list[Text], Field(fail_fast=True, max_length=MAX_PROMPTS)]
        | Ids
        | Annotated[list[Ids], Field(fail_fast=True, max_length=MAX_PROMPTS)]
    )
    echo: bool | None = None
    logprobs: Annotated[int, Field(ge=0, le=MAX_LOGPROBS)] | None = None


class TokenizeRequest(RequestBody):
    """Either a text, taken as it is, or messages, rendered as a chat would be."""

    prompt: Text | None = None
    messages: Messages | None = None
    return_token_strs: bool | None = None

    @classmethod
    def refuse_unserved(cls, fields: Mapping[str, Any]) -> None:
        refuse_unserved_messages(fields.get("messages"))

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.prompt is None) == (self.messages is None):
            raise InvalidRequest("exactly one of prompt and messages is needed", param="prompt")
        return self


class DetokenizeRequest(RequestBody):
    tokens: Ids
