"""`hybrid route`: what a policy does with a prompt, and with many."""

from __future__ import annotations

import click

from ..lazy_group import Lazy, LazyGroup

COMMANDS = {
    "explain": Lazy("explain", "explain", "Explain where a prompt would be answered, and why."),
    "lint": Lazy("lint", "lint", "Check a policy, and its rules over prompts."),
    "test": Lazy("test", "test", "Replay a file of prompts through a policy, and measure the router."),
    "diff": Lazy("diff", "diff", "Show which prompts two policies send different ways, and why."),
    "calibrate": Lazy("calibrate", "calibrate", "Find the threshold for a wanted share, error rate or budget."),
    "train": Lazy("train", "train_command", "Learn from outcomes which prompts gain from the cloud."),
    "feedback": Lazy("feedback", "feedback", "Correct a learned router by what its answers turned out to be, or go back."),
    "record": Lazy("record", "record", "Write the decisions on a file of prompts without their text."),
    "replay": Lazy("replay", "replay", "Ask another policy about recorded decisions."),
    "gate": Lazy("gate", "gate", "Calibrate the confidence of a device's model from outcomes."),
    "presets": Lazy("presets", "presets_command", "List the policies that ship, and where their files are."),
    "schema": Lazy("schema", "schema", "Print the JSON schema of a policy file."),
}


@click.command(cls=LazyGroup, package=__package__, lazy=COMMANDS, default="explain")
def route() -> None:
    """Explain where a prompt would be answered, and test policies.

    `hybrid route PROMPT` is short for `hybrid route explain PROMPT`, with all of its options.
    """
