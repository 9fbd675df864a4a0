"""`hybrid serve MODEL`: a model behind an OpenAI-compatible endpoint, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ...cloud.engine.engine import Engine
    from ...cloud.server.running import RunningServer
    from ...cloud.server.settings import ServerSettings
    from ...shared_protocol.model import Model

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _option(name: str, help: str, **more: Any) -> Decorator:
    """An option that HYBRID_SERVE_NAME sets too."""
    variable = "HYBRID_SERVE_" + name.removeprefix("--").replace("-", "_").upper()
    return click.option(name, help=help, envvar=variable, show_envvar=True, show_default=more.get("default") is not None, **more)


@click.command()
@click.argument("model")
@_option("--host", "Address to listen on. Other machines can reach it only when there are API keys.", default="127.0.0.1")
@_option("--port", "Port; 0 takes a free one and prints it.", type=click.IntRange(0, 65535), default=8000)
@_option("--served-model-name", "The model's name for clients, if not MODEL's own.")
@_option("--threads", "Compute threads; default: one per CPU that this process may use.", type=click.IntRange(min=1))
@_option("--backend", "What computes.", type=click.Choice(["auto", "native", "reference"]), default="auto")
@_option(
    "--quantise",
    "Round float weights at load; default: int8 for a folder, a GGUF file as it is.",
    type=click.Choice(["int8", "int4", "int4-symmetric", "none"]),
)
@_option("--max-model-len", "Tokens of one request; default: the model's context.", type=click.IntRange(min=1))
@_option("--kv-mib", "KV cache in MiB; default: four contexts, at most 512 MiB.", type=click.IntRange(min=1))
@_option("--max-num-seqs", "Requests computed at once.", type=click.IntRange(min=1), default=64)
@_option(
    "--max-num-batched-tokens",
    "Tokens of one step; more: a few per cent faster in all, and readers wait longer.",
    type=click.IntRange(min=1),
    default=128,
)
@_option(
    "--max-requests", "Requests held at once, running and waiting; more are told to come back.", type=click.IntRange(min=1), default=256
)
@_option(
    "--tokens-per-minute", "Tokens that each key may have a minute, prompts and answers; default: no limit.", type=click.IntRange(min=0)
)
@_option("--allowed-origin", "A web page that may call, such as https://app.example; repeatable.", multiple=True)
@_option("--allowed-host", "A further name under which a loopback server may be called; repeatable.", multiple=True)
@_option(
    "--receive-s",
    "Seconds that a client may be silent within a request.",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
)
@_option("--drain-s", "Seconds that running requests get at SIGTERM.", type=click.FloatRange(min=0), default=30.0)
@_option("--log-level", "What to log.", type=click.Choice(["debug", "info", "warning", "error"]), default="info")
@_option("--ready-fd", "File descriptor that gets one line of JSON once the server listens, and is closed.", type=click.IntRange(min=1))
@click.option("--json", "as_json", is_flag=True, help="Print that line of JSON on stdout.")
def serve(model: str, **options: Any) -> None:
    """Serve MODEL, a name from `hybrid list` or a path, behind an OpenAI-compatible endpoint.

    API keys are read from the file that HYBRID_API_KEYS_FILE names, one `id:secret` a line; HYBRID_ADMIN_KEY opens /internal/state.
    Logs go to stderr, one JSON object a line, never with the text of a prompt.
    """
    from ...cloud.server.keys import keys_from_environment
    from ...cloud.server.logs import log_to_stderr
    from ...cloud.server.settings import ServerSettings
    from ...shared_protocol.ticket import ticket_secret

    _check_descriptor(options["ready_fd"])
    log_to_stderr(options["log_level"])
    _allow_connections()
    settings = ServerSettings(
        host=options["host"],
        port=options["port"],
        keys=keys_from_environment(os.environ),
        allowed_hosts=options["allowed_host"],
        allowed_origins=options["allowed_origin"],
        model_id=options["served_model_name"],
        max_requests=options["max_requests"],
        tokens_per_minute=options["tokens_per_minute"],
        receive_s=options["receive_s"],
        drain_s=options["drain_s"],
        ticket_secret=ticket_secret(os.environ),
    )
    sys.setswitchinterval(5e-4)  # else the engine's thread, back from a step of 2 ms, waits 5 ms for the interpreter
    sys.exit(asyncio.run(_serve(model, settings, options)))


def _check_descriptor(number: int | None) -> None:
    """Before the model is loaded, and before anyone is told that the server listens."""
    if number is None:
        return
    try:
        os.fstat(number)
    except OSError as error:
        raise click.BadParameter(f"file descriptor {number}: {error.strerror}", param_hint="'--ready-fd'") from None


def _allow_connections() -> None:
    """Open as many files, which connections are, as the system lets this process; its first limit is often 1024."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _serve(name: str, settings: ServerSettings, options: dict[str, Any]) -> int:
    from ...cloud.engine.frontend import Frontend
    from ...cloud.engine.open_engine import block_bytes, open_engine
    from ...cloud.engine.thread_client import ThreadEngineClient
    from ...cloud.server.running import serve_until_signalled
    from ...quant.at_load import quantised
    from ...shared_protocol.model import load_model

    model = quantised(load_model(name), options["quantise"])
    mib = options["kv_mib"]
    engine = open_engine(
        model,
        quantise="none",  # it is done
        backend=options["backend"],
        threads=options["threads"],
        max_model_len=options["max_model_len"],
        kv_blocks=None if mib is None else max(1, (mib << 20) // block_bytes(model.architecture)),
        max_num_seqs=options["max_num_seqs"],
        max_num_batched_tokens=options["max_num_batched_tokens"],
    )
    # choices wait one by one: a request of the most choices must find room beside those that are held, or it would be refused for ever
    client = ThreadEngineClient(engine, max_queue=settings.max_requests + settings.max_choices)

    def on_ready(server: RunningServer) -> None:
        facts = _facts(server, model, engine)
        click.echo(_block(facts, model, settings), err=True)
        line = json.dumps(facts)
        if options["as_json"]:
            click.echo(line)
        if options["ready_fd"] is not None:
            with os.fdopen(options["ready_fd"], "w") as ready:
                ready.write(line + "\n")

    try:
        return await serve_until_signalled(Frontend(model, client), settings, on_ready)
    finally:
        await client.close()


def _facts(server: RunningServer, model: Model, engine: Engine) -> dict[str, Any]:
    """What a program that started the server wants to know; a stable object."""
    executor = engine.executor
    return {
        "url": server.url,
        "host": server.host,
        "port": server.port,
        "pid": os.getpid(),
        "model": server.app.service.model_id,
        "quantisation": model.card.quantisation,
        "max_model_len": engine.max_model_len,
        "kv_tokens": (executor.num_blocks - 1) * executor.block_size,
        "kv_bytes": executor.memory().kv,
        "kernel_id": executor.kernel_id,
        "auth": bool(server.app.service.settings.keys),
    }


def _block(facts: dict[str, Any], model: Model, settings: ServerSettings) -> str:
    card = model.card
    weights = f"{card.quantisation} ({card.bits_per_weight:.2f} bits per weight)" if card.bits_per_weight else card.quantisation
    auth = "keys of HYBRID_API_KEYS_FILE" if settings.keys else "off: no keys, this machine only"
    rows = {
        "url": f"{facts['url']}/v1",
        "model": f"{facts['model']}  {card.architecture}, {weights}, {card.num_parameters / 1e6:,.0f} M parameters",
        "context": f"{facts['max_model_len']:,} tokens",
        "KV cache": f"{facts['kv_tokens']:,} tokens, {facts['kv_bytes'] / 2**20:,.0f} MiB",
        "kernels": facts["kernel_id"],
        "auth": auth + (", admin key set" if settings.keys.has_admin else ""),
        "API": f"{facts['url']}/openapi.json",
    }
    return "Hybrid is serving\n" + "\n".join(f"  {name:<9} {value}" for name, value in rows.items())
