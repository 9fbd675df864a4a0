"""`hybrid demo`: everything at once, on this machine, with a real small model."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ...npu_backends.cpu.library import describe
from ...npu_backends.cpu.select import serving_kernel_id
from ...shared_protocol.model import Model
from .answer_options import RUNTIMES
from .load import load_or_pull
from .output import json_option, print_json

if TYPE_CHECKING:
    from ...edge.open_runtime import RuntimeName
    from ..demo import Row

WIDTHS = (20, 11, 17, 22, 6, 7, 10)
HEAD = ("prompt", "route", "reason", "written by", "tokens", "seconds", "bytes sent")


@click.command()
@click.option("--model", default="smollm2-135m", show_default=True, help="The model of both sides: a name in the store, or a path.")
@click.option("--edge", help="Another model for the device; one with the cloud's vocabulary can draft.")
@click.option("--cloud", help="Another model for the cloud.")
@click.option("--edge-runtime", type=click.Choice(RUNTIMES), default="native", show_default=True, help="What computes on the device.")
@click.option("--target", help="The chip of --edge-runtime npu: a preset or a .toml file; default: ethos-u85-2048.")
@json_option
def demo(model: str, edge: str | None, cloud: str | None, edge_runtime: RuntimeName, target: str | None, as_json: bool) -> None:
    """Show the whole system on this machine, with a real small model.

    Starts a server on a free loopback port and a device beside it, sends eight prompts that take every way through the router,
    takes the cloud away, and then checks that all ways of computing a text agree. Exits 1 when a check fails.
    """
    from ..demo import checks, rows

    of_cloud = load_or_pull(cloud or model)
    on_device = of_cloud if (edge or model) == (cloud or model) else load_or_pull(edge or model)
    if not as_json:
        _say_what_runs(on_device, of_cloud, edge_runtime)
        click.echo(_line(HEAD))
    shown = []
    for row in rows(on_device, of_cloud, edge_runtime, target):
        shown.append(row)
        if not as_json:
            writers = " + ".join(f"{tokens} {origin}" for origin, tokens in row.origins) or "nobody"
            click.echo(_line((row.what, row.route, row.reason, writers, row.tokens, f"{row.seconds:.2f}", f"{row.bytes_sent:,}")))
            click.secho(f"  > {_clip(row.prompt)}\n  < {_clip(row.text if row.text is not None else row.why)}", dim=True)
    found = checks(of_cloud, shown)
    if as_json:
        print_json({"rows": [row.to_json() for row in shown], "checks": found})
    else:
        click.echo(f"\n{_drafting(shown, one_model=on_device is of_cloud and edge_runtime == 'native')}\n")
        for name, value in found.items():
            click.echo(f"{'ok  ' if _holds(value) else 'FAIL'} {name.replace('_', ' ')}: {value}")
    if not all(_holds(value) for value in found.values()):
        sys.exit(1)


def _drafting(shown: list[Row], *, one_model: bool) -> str:
    if one_model:
        return "One model is on both sides here, so every draft is accepted by construction: the way is shown, not a gain."
    drafted = [row.drafts for row in shown if row.drafts is not None]
    accepted, proposed = sum(drafts.accepted for drafts in drafted), sum(drafts.proposed for drafts in drafted)
    return f"Of {proposed} drafted tokens the cloud kept {accepted}." if proposed else "Nothing was drafted."


def _say_what_runs(device: Model, cloud: Model, runtime: RuntimeName) -> None:
    native, kernel_id = describe(), serving_kernel_id()
    slower = f"the NumPy reference {kernel_id}, which is slower: {native.reason or 'HYBRID_BACKEND says so'}"
    kernels = f"native kernels {kernel_id}" if kernel_id == native.kernel_id else slower
    told = [f"{m.card.name}, {m.card.quantisation}, {m.card.num_parameters / 1e6:.0f} M parameters" for m in (device, cloud)]
    computed = f"{kernels}; the device computes with {runtime}" if runtime != "native" else kernels
    click.echo(f"{told[0] if device is cloud else ' on the device, '.join(told) + ' in the cloud'}, on {computed}\n")


def _line(cells: tuple[object, ...]) -> str:
    return "  ".join(str(cell).ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)).rstrip()


def _clip(text: str, width: int = 110) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= width else one_line[: width - 1] + "…"


def _holds(value: object) -> bool:
    return value is True or (value == 0 and value is not False)
