"""What the server says about itself: models, health, readiness, metrics, version, the engine's state."""

from __future__ import annotations

import msgspec
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response

from ... import __version__
from ...shared_protocol.errors import EngineFailed, Unavailable
from ...shared_protocol.openai import Model, ModelList
from ..engine.messages import EngineStats
from .errors_http import error_response
from .generation import Service
from .respond import json_response


class Status(msgspec.Struct):
    status: str


class Version(msgspec.Struct):
    version: str
    kernel_id: str
    model: str


class InternalState(msgspec.Struct):
    """The four counts of blocks: `total` = `free` + `cached` + `used`."""

    inside: int  # requests that the server holds
    draining: bool
    engine: EngineStats


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def _model(service: Service) -> Model:
    return Model(id=service.model_id, created=service.started, owned_by="hybrid", max_model_len=service.frontend.client.max_model_len)


async def list_models(request: Request) -> Response:
    return json_response(ModelList([_model(_service(request))]))


async def show_model(request: Request) -> Response:
    service = _service(request)
    service.check_model(request.path_params["model_id"])
    return json_response(_model(service))


async def health(request: Request) -> Response:
    """Live: 200 until the engine has broken an invariant; then the process should be replaced."""
    if not _service(request).frontend.client.stats().healthy:
        error = EngineFailed("the engine is not healthy", hint="restart this server")
        error.status = 503
        return error_response(error)
    return json_response(Status("ok"))


async def ready(request: Request) -> Response:
    """Whether a new request would be taken now."""
    service = _service(request)
    if not service.frontend.client.stats().healthy:
        raise Unavailable("the engine is not healthy", retry_after_s=service.settings.retry_after_s)
    service.admission.check()
    return json_response(Status("ready"))


async def metrics(request: Request) -> Response:
    return Response(_service(request).metrics.exposition(), headers={"content-type": CONTENT_TYPE_LATEST})


async def version(request: Request) -> Response:
    service = _service(request)
    return json_response(Version(__version__, service.frontend.client.kernel_id, service.model_id))


async def internal_state(request: Request) -> Response:
    service = _service(request)
    return json_response(InternalState(service.admission.inside, service.admission.draining, service.frontend.client.stats()))
