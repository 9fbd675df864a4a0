"""`hybrid compile`: a model for a chip, with what was decided and what it would cost as a table, as JSON and as a page."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from ...shared_protocol.errors import ConfigError
from ...shared_protocol.whole_file import write_whole
from .numbers import FiniteRange
from .output import Progress, json_option, megabytes, print_json, print_table

SCHEMES = ("w8a8", "w4a8")  # as compiler/quantise has them, which would load NumPy for --help
PAGE_LATENCY_S = 100e-6  # of a phone's flash, for a page of 512 KB


@click.command("compile")
@click.argument("model", required=False)
@click.option("--target", default="ethos-u85-2048", show_default=True, help="A preset's name, or a chip of your own as a .toml file.")
@click.option("--scheme", type=click.Choice(SCHEMES), default="w8a8", show_default=True, help="Bits of weights and activations.")
@click.option("--context", type=click.IntRange(min=1), help="Tokens held at most; default: 4096, or fewer where the model knows fewer.")
@click.option("--smooth", is_flag=True, help="Move large columns of rows to the weights before rounding (w8a8).")
@click.option("--smooth-text", type=click.Path(path_type=Path), help="A text to smooth by, of what the model is used for.")
@click.option("--storage", type=FiniteRange(0, min_open=True), help="GB/s of a storage to page weights from that memory does not hold.")
@click.option("--report", type=click.Path(file_okay=False, path_type=Path), help="Write report.json, report.html and traces there.")
@click.option("--check/--no-check", default=None, help="Compare with the float32 source over a text; default: with --report.")
@click.option("--targets", is_flag=True, help="List the presets instead.")
@json_option
def compile_command(
    model: str | None,
    target: str,
    scheme: str,
    smooth: bool,
    smooth_text: Path | None,
    context: int | None,
    storage: float | None,
    report: Path | None,
    check: bool | None,
    targets: bool,
    as_json: bool,
) -> None:
    """Compile MODEL for the chip of --target, and say what it would cost there.

    MODEL is a name from `hybrid list` or a path. What was compiled is kept, by content, for --runtime npu. Speeds are predictions of a
    model of the chip, not measurements.
    """
    if targets:
        _list_targets(as_json)
        return
    if model is None:
        raise click.UsageError("which model? Name one from `hybrid list`, or say --targets for the chips.")
    from ...compiler.cache import compiled_for
    from ...compiler.compile import facts_of
    from ...compiler.describe import describe
    from ...compiler.fidelity import fidelity
    from ...compiler.program import Flash
    from ...compiler.report import ArtifactReport
    from ...compiler.trace import trace
    from ...edge.checks import chosen_context
    from ...npu_backends.preset import load_preset
    from ..report.compiled import compiled_page
    from .load import load_or_pull
    from .smoothing_text import smoothing_text

    chip = load_preset(target)
    text = smoothing_text(smooth, smooth_text)
    if report is not None:
        _make(report)  # before minutes of work are lost to it
    loaded = load_or_pull(model)
    progress = Progress()
    try:
        found = compiled_for(
            loaded,
            facts_of(
                loaded,
                chip,
                scheme=scheme,
                context=chosen_context(context, loaded.card),
                storage=None if storage is None else Flash(storage * 1e9, PAGE_LATENCY_S),
                smooth=text,
            ),
            smooth=text,
            progress=lambda what, done, total: progress(f"{what} ({done} of {total})", 0, None),
            always_keep=True,
        )
        agreement = None
        if check or (check is None and report is not None):
            progress("comparison with the float32 source", 0, None)
            agreement = fidelity(loaded, found.compiled.facts, found.compiled.constants)
        progress("report", 0, None)
        kept = None
        if found.folder is not None and found.sha256 is not None:
            size = sum(file.stat().st_size for file in found.folder.iterdir())
            kept = ArtifactReport(str(found.folder), found.sha256, found.compiled.facts.compiler, size, found.cached)
        made = describe(found.compiled, kept, agreement)
        if report is not None:
            write_whole(report / "report.json", msgspec.json.format(msgspec.json.encode(made), indent=1))
            write_whole(report / "report.html", compiled_page(made).encode())
            for program in found.compiled.programs:
                write_whole(report / f"trace_{program.shape.name}.json", trace(found.compiled, program).encode())
    finally:
        progress.close()
    if as_json:
        print_json(msgspec.to_builtins(made))
        return
    rows = []
    for graph in made.graphs:
        plans = ", ".join(f"{arena.name} {arena.size:,} B ({arena.ratio:.3f})" for arena in graph.arenas if arena.size)
        share = graph.tokens_per_s / graph.roofline_tokens_per_s
        rows.append(
            (graph.name, graph.rows, f"{graph.cycles:,}", f"{graph.seconds * 1e3:.3f}", f"{graph.tokens_per_s:,.1f}", f"{share:.0%}", plans)
        )
    print_table(("RUN", "TOKENS", "CYCLES", "MS", "TOKENS/S", "OF ROOFLINE", "MEMORY PLANS (OVER THE BOUND)"), rows)
    for graph in made.graphs:
        if graph.stalls_seconds:
            click.echo(f"{graph.name}: {graph.stalls_seconds * 1e3:.3f} ms of a run waits for weights that memory does not hold")
    refused = {(one.kind, one.reason): one for graph in made.graphs for one in graph.refused}
    for one in refused.values():
        click.echo(f"on the processor: {one.kind}, {one.count} times a run: {one.reason}")
    if made.smoothing is not None:
        whose = "your text" if made.smoothing.own_text else "the text that comes with Hybrid"
        click.echo(f"smoothed by {made.smoothing.tokens:,} tokens of {whose}")
    if made.fidelity is not None:
        told = f"{made.fidelity.kl_mean:.4f} nats from the float32 source on average, the same next word after {made.fidelity.top1:.1%}"
        click.echo(f"{told} of {made.fidelity.tokens} tokens")
    if kept is not None:
        click.echo(f"{'was kept' if kept.cached else 'kept'} in {kept.path}, {megabytes(kept.bytes)}, sha256 {kept.sha256[:12]}")
    else:
        click.echo("not kept: nothing can be written below HYBRID_HOME, so --runtime npu compiles it again")
    if report is not None:
        click.echo(f"report in {report / 'report.html'}")


def _make(report: Path) -> None:
    try:
        report.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"no report can be written to {report}: {error.strerror}", param="report", hint="name a folder") from None


def _list_targets(as_json: bool) -> None:
    from ...npu_backends.preset import load_preset, preset_names

    chips = [load_preset(name) for name in preset_names()]
    if as_json:
        print_json({"targets": [msgspec.to_builtins(chip) for chip in chips]})
        return
    rows = []
    for chip in chips:
        speed = f"{2 * chip.peak_macs_per_second / 1e12:.3g}"
        rows.append(
            (chip.name, f"{chip.array.rows} x {chip.array.cols}", speed, megabytes(chip.sram.bytes), ", ".join(chip.weight_formats))
        )
    print_table(("TARGET", "ARRAY", "TOPS", "SRAM", "FORMATS"), rows)
