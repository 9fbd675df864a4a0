"""`hybrid route gate`: what the confidence of a device's model means, learned from outcomes."""

from __future__ import annotations

import click
import msgspec

from ....router.confidence.gate import GroupGate
from ....router.confidence.probe import Probe
from ....router.confidence.signals import SIGNALS
from ....router.policy.policy import Policy
from ....shared_protocol.whole_file import write_whole
from ..output import json_option, print_json
from ..policy_option import policy_option


@click.command()
@click.option("--outcomes", required=True, type=click.Path(dir_okay=False), help="Right and wrong answers of the model (JSON lines).")
@click.option("--model", required=True, help="The device's model: a name in the store, or a path.")
@click.option("--signal", type=click.Choice([*SIGNALS, "probe"]), help="What to judge by; the policy's, if not said.")
@policy_option()
@click.option("--output", required=True, type=click.Path(dir_okay=False), help="Where to write the gate, for the key confidence.gate.")
@json_option
def gate(outcomes: str, model: str, signal: str | None, policy_file: str | None, output: str, as_json: bool) -> None:
    """Calibrate the confidence of a device's model from outcomes of it.

    The gate fits this model file in this quantisation only. Figures are of answers that the map they judge has not seen. For the signal
    probe, one half of the outcomes makes the probe, and the other the gate.
    """
    from ....quant.at_load import quantised
    from ....router.confidence.calibrate import calibrate
    from ....router.confidence.outcome_file import read_outcome_file
    from ....shared_protocol.model import load_model

    policy = (Policy.load(policy_file) if policy_file else Policy.default()).confidence
    if signal is not None:
        policy = msgspec.structs.replace(policy, signal=signal)
    found = read_outcome_file(outcomes)
    card = quantised(load_model(model)).card
    found.check_model(card)
    made = calibrate(found.rows, card, policy, found.data_hash)
    write_whole(output, made.to_json())
    if as_json:
        print_json({"output": output, **msgspec.to_builtins(made)})
    else:
        click.echo(f"{output}: calibration {made.calibration_id} of {made.model} ({made.quantisation}), {made.signal}")
        if isinstance(made.probe, Probe):
            click.echo(_probe_line(made.probe))
        for name, group in made.groups.items():
            click.echo("\n".join(_lines(name, group)))


def _probe_line(probe: Probe) -> str:
    return (
        f"probe: of {probe.size} numbers of the hidden state and the tokens' certainty, fitted on {probe.n} other answers "
        f"({probe.correct} right), ridge {probe.ridge:g}"
    )


def _lines(name: str, group: GroupGate) -> list[str]:
    told = [
        f"{name}: {group.correct} of {group.n} right, AUROC {group.auroc:.3f}, ECE {group.ece_before:.3f} -> {group.ece_after:.3f}",
        *(
            f"  at most {promise.error_rate:.0%} wrong from {promise.threshold:.3f} on: "
            f"{promise.kept} of {promise.n} kept, {promise.wrong} of them wrong"
            for promise in group.promises
        ),
    ]
    if not group.promises:
        told.append("  no error rate can be promised from so few outcomes")
    if group.stop is not None:
        told.append(f"  given up in mid-text below {group.stop.below:.3f} after {group.stop.after} tokens")
    return told
