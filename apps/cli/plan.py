"""`hybrid plan`: whether drafting on the device pays, from the times of a device, a link and a cloud."""

from __future__ import annotations

import click

from .answer_options import RUNTIMES
from .numbers import FiniteRange, milliseconds
from .output import json_option, print_json, print_table
from .policy_option import policy_option


@click.command()
@click.argument("model", required=False)
@click.option("--rtt-ms", type=FiniteRange(0, 1e6), required=True, help="Round trip to the cloud, as ping tells it.")
@click.option(
    "--step-ms",
    callback=milliseconds,
    metavar="MS[,MS...]",
    required=True,
    help="The cloud's step over 1, 2, 3, ... positions; one number: as long over any number of them.",
)
@click.option(
    "--draft-ms",
    callback=milliseconds,
    metavar="MS[,MS...]",
    help="The device's time for 1, 2, 3, ... drafted tokens; one number: for each token.",
)
@click.option("--acceptance", type=FiniteRange(0, 1), required=True, help="Share of drafted tokens that the cloud keeps.")
@click.option("--queue-ms", type=FiniteRange(0, 1e6), default=0.0, help="What a round waits in the cloud.", show_default=True)
@click.option("--bandwidth", type=FiniteRange(min=1), help="Bytes a second of the link; default: a round's bytes cost nothing.")
@policy_option()
@click.option("--runtime", type=click.Choice(RUNTIMES), default="native", show_default=True, help="What computes MODEL.")
@click.option("--threads", type=click.IntRange(1, 1024), help="Compute threads for MODEL; default: one per CPU that may be used.")
@json_option
def plan(
    model: str | None,
    rtt_ms: float,
    step_ms: tuple[float, ...],
    draft_ms: tuple[float, ...] | None,
    acceptance: float,
    queue_ms: float,
    bandwidth: float | None,
    policy_file: str | None,
    runtime: str,
    threads: int | None,
    as_json: bool,
) -> None:
    """Say whether it pays that the device drafts and the cloud verifies, and how many tokens to draft.

    The device's times are measured with MODEL, a name from `hybrid list` or a path, or are those of --draft-ms. The same function decides
    for the SDK. Nothing is sent.
    """
    from ...router.plan import SpeculationFacts, draft_curve, plan_speculation
    from ...router.policy.policy import Policy

    policy = (Policy.load(policy_file) if policy_file else Policy.default()).speculation
    longest = policy.max_draft
    if (model is None) == (draft_ms is None):
        raise click.UsageError("name a MODEL to measure, or give --draft-ms")
    if model is not None:
        drafts = draft_curve(_measured(model, runtime, threads, longest), longest)
    else:
        assert draft_ms is not None
        each = draft_ms if len(draft_ms) > 1 else tuple(k * draft_ms[0] for k in range(1, longest + 1))
        drafts = (0.0, *(ms / 1000 for ms in each))
    steps = step_ms if len(step_ms) > 1 else step_ms * (longest + 1)
    facts = SpeculationFacts(rtt_ms / 1000, bandwidth, drafts, tuple(ms / 1000 for ms in steps), acceptance, queue_ms / 1000)
    made = plan_speculation(facts, policy)
    sync = [1000 * seconds for seconds in made.sync_s or ()]
    plain = None if made.plain_s is None else 1000 * made.plain_s
    even = None if made.break_even_rtt_s is None else 1000 * made.break_even_rtt_s
    if as_json:
        told = {
            "mode": made.mode,
            "draft_len": made.draft_len,
            "why": made.why,
            "plain_ms": plain,
            "sync_ms": sync,
            "break_even_rtt_ms": even,
        }
        print_json(told | {"draft_ms": [1000 * seconds for seconds in drafts]})
        return
    if plain is not None:
        rows = [("cloud alone", f"{plain:.1f}", "1.00")]
        rows += [(f"{k} drafted", f"{ms:.1f}", f"{plain / ms:.2f}") for k, ms in enumerate(sync) if k]
        print_table(("", "MS/TOKEN", "TIMES AS FAST"), rows)
    click.echo(f"{'draft ' + str(made.draft_len) + ' a round' if made.draft_len else 'do not draft'}: {made.why}")
    if even is not None:
        click.echo(f"drafting is faster below a round trip of {even:.1f} ms" if even > 0 else "drafting is faster at no round trip")


def _measured(model: str, runtime: str, threads: int | None, longest: int) -> list[float]:
    """Milliseconds of a k-token extend of `model` on this machine, k = 0 .. longest."""
    from typing import cast

    from ...edge.open_runtime import RuntimeName, open_runtime
    from .load import load_or_pull

    opened = open_runtime(load_or_pull(model), cast(RuntimeName, runtime), threads=threads)
    try:
        return [float(ms) for ms in opened.cost_curve(max(2, longest))]
    finally:
        opened.close()
