"""The shapes of OpenAI's API that the server writes and the SDK reads, with our own fields under `hybrid`.

Requests are validated in the server, at the HTTP edge; these are answers.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]
Origin = Literal["edge", "cloud", "drafted"]


Count = Annotated[int, msgspec.Meta(ge=0)]


class PromptTokensDetails(msgspec.Struct):
    cached_tokens: Count = 0


class Usage(msgspec.Struct):
    prompt_tokens: Count
    completion_tokens: Count
    total_tokens: Count
    prompt_tokens_details: PromptTokensDetails | None = None


class Span(msgspec.Struct, frozen=True):
    """A run of output tokens with one origin. `drafted`: written by the device and accepted by the cloud."""

    origin: Origin
    tokens: int


class Drafts(msgspec.Struct, frozen=True):
    """What the device drafted for one answer: tokens sent to be verified, and how many of them the cloud kept."""

    rounds: int
    proposed: int
    accepted: int


class DeviceAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of the answer that the device wrote first, in a cascade."""

    gate: str  # passed, below_threshold, stopped_early, unavailable or skipped
    confidence: float | None = None
    calibration_id: str | None = None
    tokens: int = 0  # that the device computed before it was decided
    saved_at_most: int | None = None  # tokens up to max_tokens that an answer given up in mid-text was spared
    draft: str | None = None  # where the policy has it go along as a draft: sent, private (it stayed here) or too_long


class Attempt(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who was asked for an answer, what came of it (`answered`, `low_confidence`, or an error's code), and the cloud's tokens that were
    billed for it."""

    target: str
    outcome: str
    tokens: int = 0


class HybridInfo(msgspec.Struct, omit_defaults=True):
    """Where and why an answer was computed."""

    seed: int | None = None
    route: str | None = None
    reason: str | None = None
    rule: str | None = None
    policy: str | None = None  # hash of the one that decided ...
    policy_version: str | None = None  # ... and its owner's name for it
    spans: list[Span] = []
    bytes_sent: int | None = None
    drafts: Drafts | None = None  # when the device drafted
    drafting: str | None = None  # why it did, or did not, when the cloud had a part
    device_answer: DeviceAnswer | None = None
    attempts: list[Attempt] = []  # in order
    restarted: bool = False  # on a chunk of its own: what came before is void, the whole answer follows
    continued: bool = False  # on a chunk of its own: the cloud's answer broke off here, the device goes on
    redacted: dict[str, int] | None = None  # placeholders of each kind in what was sent


class TopLogprob(msgspec.Struct):
    token: str
    logprob: float
    bytes: list[int] | None


class TokenLogprob(msgspec.Struct):
    token: str
    logprob: float
    bytes: list[int] | None
    top_logprobs: list[TopLogprob]


class ChoiceLogprobs(msgspec.Struct):
    content: list[TokenLogprob] | None
    refusal: list[TokenLogprob] | None = None


class Message(msgspec.Struct):
    role: Literal["assistant"]
    content: str | None
    refusal: str | None = None


class ChatChoice(msgspec.Struct):
    index: int
    message: Message
    finish_reason: FinishReason
    logprobs: ChoiceLogprobs | None = None


class ChatCompletion(msgspec.Struct):
    id: str
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage
    object: Literal["chat.completion"] = "chat.completion"
    hybrid: HybridInfo | None = None


class Delta(msgspec.Struct, omit_defaults=True):
    role: Literal["assistant"] | None = None
    content: str | None = None


class ChunkChoice(msgspec.Struct):
    index: int
    delta: Delta
    finish_reason: FinishReason | None = None
    logprobs: ChoiceLogprobs | None = None


class ChatCompletionChunk(msgspec.Struct):
    id: str
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: Usage | None = None
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    hybrid: HybridInfo | None = None


class CompletionLogprobs(msgspec.Struct):
    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]
    text_offset: list[int]


class CompletionChoice(msgspec.Struct):
    index: int
    text: str
    finish_reason: FinishReason | None
    logprobs: CompletionLogprobs | None = None


class Completion(msgspec.Struct):
    id: str
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage | None
    object: Literal["text_completion"] = "text_completion"
    hybrid: HybridInfo | None = None


class Model(msgspec.Struct):
    id: str
    created: int
    owned_by: str
    object: Literal["model"] = "model"
    max_model_len: int | None = None


class ModelList(msgspec.Struct):
    data: list[Model]
    object: Literal["list"] = "list"


class ErrorBody(msgspec.Struct):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorEnvelope(msgspec.Struct):
    error: ErrorBody
