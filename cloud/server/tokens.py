"""POST /tokenize and /detokenize: text to token ids and back, without generating."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ...shared_protocol.errors import InvalidRequest
from .body import read_body
from .generation import Service
from .respond import json_response
from .schemas import DetokenizeRequest, TokenizeRequest


class Tokens(msgspec.Struct):
    tokens: list[int]
    count: int
    max_model_len: int
    token_strs: list[str] | None = None


class Text(msgspec.Struct):
    prompt: str


async def tokenize(request: Request) -> Response:
    service: Service = request.app.state.service
    body = await read_body(request, TokenizeRequest)
    service.check_model(body.model)
    frontend = service.frontend
    if body.messages is not None:
        ids = await frontend.render([message.for_template() for message in body.messages])
    else:
        ids = await frontend.tokenize(body.prompt or "")
    strings = None
    if body.return_token_strs:
        tokenizer = frontend.model.tokenizer
        strings = [tokenizer.decode([token], skip_special=False) for token in ids]
    return json_response(Tokens(list(ids), len(ids), frontend.client.max_model_len, strings))


async def detokenize(request: Request) -> Response:
    service: Service = request.app.state.service
    body = await read_body(request, DetokenizeRequest)
    service.check_model(body.model)
    tokenizer = service.frontend.model.tokenizer
    if body.tokens and max(body.tokens) >= tokenizer.vocab_size:
        raise InvalidRequest(f"token ids must be below {tokenizer.vocab_size}, found {max(body.tokens)}", param="tokens")
    return json_response(Text(tokenizer.decode(body.tokens, skip_special=False)))
