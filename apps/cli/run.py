"""`hybrid run MODEL "prompt"`: one answer of a model on this machine."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .answer_options import answer_options, of_runtime
from .output import Progress, json_option, print_json
from .terminal import Writer, leave_closed_pipe, say, tokens_per_s

if TYPE_CHECKING:
    from ...edge.session import EdgeAnswer
    from ...shared_protocol.runtime import EdgeRuntime


@click.command()
@click.argument("model")
@click.argument("prompt", required=False)
@answer_options
@click.option("--smooth", is_flag=True, help="With --runtime npu: move large columns of rows to the weights before rounding.")
@click.option("--smooth-text", type=click.Path(path_type=Path), help="A text to smooth by, of what the model is used for.")
@json_option
def run(model: str, prompt: str | None, as_json: bool, smooth: bool, smooth_text: Path | None, **options: Any) -> None:
    """Answer PROMPT with MODEL on this machine, and nowhere else.

    MODEL is a name from `hybrid list` or a path. Without PROMPT, or with "-", the prompt is read from standard input. The answer goes
    to stdout as it is written; where and how fast it was computed, to stderr.
    """
    prompt = _read(prompt)
    from ...edge.open_runtime import open_runtime
    from ...edge.session import Session
    from ...shared_protocol.sampling import SamplingParams
    from .load import load_or_pull
    from .smoothing_text import smoothing_text

    text = smoothing_text(smooth, smooth_text)
    began = time.monotonic()
    loaded = load_or_pull(model)
    params = SamplingParams(temperature=options["temperature"], seed=options["seed"], max_tokens=options["max_tokens"])
    messages = [{"role": "user", "content": prompt}]
    if options["system"] is not None:
        messages.insert(0, {"role": "system", "content": options["system"]})
    prompt_ids = loaded.render_chat(messages)  # before the weights are made ready: what is wrong with it is said at once
    progress = Progress()
    try:
        runtime = open_runtime(
            loaded,
            **of_runtime(options),
            smooth=text,
            progress=lambda what, done, total: progress(f"compiling: {what} ({done} of {total})", 0, None),
        )
    finally:
        progress.close()
    try:
        answer = Session(runtime, loaded).generate(prompt_ids, params)
        load_s = time.monotonic() - began
        facts = {"model": loaded.card.name, "runtime": options["runtime"], "kernel_id": runtime.kernel_id, "seed": answer.seed}
        if as_json:
            print_json(facts | _whole(answer) | {"load_s": round(load_s, 3)} | _simulated(runtime))
        else:
            _stream(answer, f"{options['runtime']} ({runtime.kernel_id}), loaded in {load_s:.2f} s, seed {answer.seed}")
            for spent in _simulated(runtime).values():
                says = f"the chip would have taken {spent['seconds']:.3f} s and {spent['cycles']:,} cycles"
                say(f"[{says}; it decodes {spent['decode_tokens_per_s']:.1f} tokens/s]")
    except BrokenPipeError:
        leave_closed_pipe()
    finally:
        runtime.close()


def _simulated(runtime: EdgeRuntime) -> dict[str, dict[str, float]]:
    """What the chip would have taken, where there is none and it was simulated."""
    from ...edge.npu.runtime import NpuRuntime

    if not isinstance(runtime, NpuRuntime):
        return {}
    spent = runtime.simulated()
    chip = {"cycles": spent.chip.cycles, "bytes": spent.chip.bytes, "joules": spent.chip.joules}
    return {"simulated": {**chip, "runs": spent.runs, "seconds": spent.seconds, "decode_tokens_per_s": runtime.tokens_per_second}}


def _stream(answer: EdgeAnswer, where: str) -> None:
    writer, tokens, finish = Writer(time.monotonic), 0, None
    try:
        for chunk in answer:
            tokens += 1
            finish = chunk.finish_reason
            writer.write(chunk.text)
    finally:
        writer.end_line()
        ended = {"stop": "", "length": ", cut at its length", None: ", interrupted"}[finish]
        say(f"[device, {where}: {writer.pace(tokens)}{ended}]")


def _whole(answer: EdgeAnswer) -> dict[str, object]:
    began, times, text, finish = time.monotonic(), [], [], None
    for chunk in answer:
        times.append(time.monotonic())
        text.append(chunk.text)
        finish = chunk.finish_reason
    rate = tokens_per_s(len(times), times[-1] - times[0])
    return {
        "text": "".join(text),
        "finish_reason": finish,
        "prompt_tokens": answer.num_prompt,
        "completion_tokens": len(times),
        "first_token_s": round(times[0] - began, 3),
        "tokens_per_s": None if rate is None else round(rate, 2),
    }


def _read(prompt: str | None) -> str:
    if prompt is None and sys.stdin.isatty():
        raise click.UsageError("give a PROMPT, or pipe one in")
    if prompt is None or prompt == "-":
        try:
            prompt = sys.stdin.buffer.read().decode("utf-8").removesuffix("\n")
        except UnicodeDecodeError as error:
            raise click.UsageError(f"the prompt is not UTF-8: {error.reason} at byte {error.start}") from None
    if not prompt.strip():
        raise click.UsageError("the prompt is empty")
    return prompt
