"""The description at /openapi.json: request schemas from pydantic, answers from msgspec, one error for all routes."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from ...shared_protocol import openai
from .schemas import ChatRequest, CompletionRequest, DetokenizeRequest, RequestBody, TokenizeRequest
from .status import InternalState, Status, Version
from .tokens import Text, TokenizerInfo, Tokens

_REF = "#/components/schemas/{}"
_REQUESTS: dict[str, type[RequestBody]] = {
    "/v1/chat/completions": ChatRequest,
    "/v1/completions": CompletionRequest,
    "/tokenize": TokenizeRequest,
    "/detokenize": DetokenizeRequest,
}
_TEXTS = {"/v1/chat/completions": "text/event-stream", "/v1/completions": "text/event-stream", "/metrics": "text/plain"}
_ANSWERS: dict[str, type[msgspec.Struct]] = {
    "/v1/models": openai.ModelList,
    "/v1/models/{model_id}": openai.Model,
    "/v1/chat/completions": openai.ChatCompletion,
    "/v1/completions": openai.Completion,
    "/tokenize": Tokens,
    "/detokenize": Text,
    "/tokenizer_info": TokenizerInfo,
    "/health": Status,
    "/ready": Status,
    "/version": Version,
    "/internal/state": InternalState,
}


def describe(app: FastAPI) -> None:
    """Make `app.openapi()` tell what the routes read and write; FastAPI cannot see it, since they read their bodies themselves."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _complete(get_openapi(title=app.title, version=app.version, routes=app.routes))
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _complete(document: dict[str, Any]) -> dict[str, Any]:
    _, requests = models_json_schema([(schema, "validation") for schema in _REQUESTS.values()], ref_template=_REF.format("{model}"))
    answer_types = [*dict.fromkeys(_ANSWERS.values()), openai.ErrorEnvelope]
    _, answers = msgspec.json.schema_components(answer_types, ref_template=_REF.format("{name}"))
    document["components"] = {
        "schemas": answers | requests["$defs"],
        "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}, "key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"}},
    }
    document["security"] = [{"bearer": []}, {"key": []}, {}]
    for path, methods in document["paths"].items():
        for operation in methods.values():
            content = _json(_ANSWERS[path]) if path in _ANSWERS else {}
            if path in _TEXTS:
                content[_TEXTS[path]] = {}
            operation["responses"] = {
                "200": {"description": "OK", "content": content},
                "default": {"description": "Error", "content": _json(openai.ErrorEnvelope)},
            }
            names = re.findall(r"{(\w+)}", path)
            if names:
                operation["parameters"] = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]
            if path in _REQUESTS:
                operation["requestBody"] = {"required": True, "content": _json(_REQUESTS[path])}
    return document


def _json(schema: type) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REF.format(schema.__name__)}}}
