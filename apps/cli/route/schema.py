"""`hybrid route schema`: which keys a policy file may hold."""

from __future__ import annotations

import json

import click

from ....router.policy.schema import policy_schema


@click.command()
def schema() -> None:
    """Print the JSON schema of a policy file: every key with its range, default and meaning.

    Editors that know JSON schema complete and check a TOML file by it.
    """
    click.echo(json.dumps(policy_schema(), indent=2))
