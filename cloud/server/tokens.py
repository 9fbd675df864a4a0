"""POST /tokenize and /detokenize: text to token ids and back, without generating. GET /tokenizer_info: what there is to know of them."""

from __future__ import annotations

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ...shared_protocol.errors import InvalidRequest
from .body import read_body
from .generation import Service
from .respond import json_response
from .schemas import DetokenizeRequest, TokenizeRequest
from .watch import while_connected


class Tokens(msgspec.Struct):
    tokens: list[int]
    count: int
    max_model_len: int
    token_strs: list[str] | None = None


class Text(msgspec.Struct):
    prompt: str


class TokenizerInfo(msgspec.Struct):
    """Names of the fields as vLLM's answer has them, so that evaluation harnesses can do without a tokenizer of their own."""

    vocab_size: int
    bos_token: str | None
    eos_token: str | None
    pad_token: str | None  # prompts are never filled up
    add_bos_token: bool
    end_token_ids: list[int]  # each of them ends an answer
    chat_template: str | None
    fingerprint: str  # of vocabulary and template: a device with the same one may draft
    vocabulary: str  # of the vocabulary alone


async def tokenizer_info(request: Request) -> Response:
    service: Service = request.app.state.service
    model = service.frontend.model
    bos, eos = (
        None if number is None else model.tokenizer.token_text(number) for number in (model.tokenizer.bos_id, model.tokenizer.eos_id)
    )
    return json_response(
        TokenizerInfo(
            vocab_size=model.tokenizer.vocab_size,
            bos_token=bos,
            eos_token=eos,
            pad_token=None,
            add_bos_token=model.tokenizer.add_bos,
            end_token_ids=sorted(model.tokenizer.eos_ids),
            chat_template=model.template,
            fingerprint=model.card.fingerprint,
            vocabulary=model.card.vocabulary,
        )
    )


async def tokenize(request: Request) -> Response:
    service: Service = request.app.state.service
    body = await read_body(request, TokenizeRequest)
    service.check_model(body.model)
    frontend = service.frontend
    if body.messages is not None:
        encoding = frontend.render([message.for_template() for message in body.messages])
    else:
        encoding = frontend.tokenize(body.prompt or "")
    ids = await while_connected(request.receive, encoding)
    return await asyncio.to_thread(_tokens, service, ids, bool(body.return_token_strs))  # a long text would hold up the event loop


async def detokenize(request: Request) -> Response:
    service: Service = request.app.state.service
    body = await read_body(request, DetokenizeRequest)
    service.check_model(body.model)
    return await asyncio.to_thread(_text, service, body.tokens)


def _tokens(service: Service, ids: list[int], with_strings: bool) -> Response:
    text_of = {token: service.frontend.model.tokenizer.token_text(token) for token in set(ids)} if with_strings else None
    strings = None if text_of is None else [text_of[token] for token in ids]
    return json_response(Tokens(ids, len(ids), service.max_model_len, strings))


def _text(service: Service, ids: list[int]) -> Response:
    tokenizer = service.frontend.model.tokenizer
    if ids and max(ids) >= tokenizer.vocab_size:
        raise InvalidRequest(f"token ids must be below {tokenizer.vocab_size}, found {max(ids)}", param="tokens")
    return json_response(Text(tokenizer.decode(ids, skip_special=False)))
