"""`hybrid route presets`: the policies that ship."""

from __future__ import annotations

import click

from ....router.policy.policy import PRESET, Policy, preset_path, presets
from ..output import json_option, print_json


@click.command("presets")
@json_option
def presets_command(as_json: bool) -> None:
    """List the policies that ship, each with its file: copy one to begin with.

    They stand wherever a policy file may: --policy preset:offline, HybridClient(policy="preset:best").
    """
    rows = [
        {"name": f"{PRESET}{name}", "about": _about(text), "hash": Policy.load(f"{PRESET}{name}").hash, "path": str(preset_path(name))}
        for name, text in presets().items()
    ]
    if as_json:
        print_json({"presets": rows})
        return
    for row in rows:
        click.echo(f"{row['name']:<22}{row['about']}\n{'':<22}{row['path']}")


def _about(text: str) -> str:
    """What its first line says, without its name."""
    return text.splitlines()[0].removeprefix("# ").partition(": ")[2]
