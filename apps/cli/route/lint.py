"""`hybrid route lint`: what is wrong, and what is odd, about a policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ....router.plan import SpeculationFacts
from ....router.policy.lint import CODES, Coverage, Warned, cover, lint_coverage, lint_policy
from ....router.policy.policy import PRESET, Policy, presets
from ....router.quota.quotas import full_view
from ....router.request import RouteContext
from ....shared_protocol.errors import ConfigError
from ....shared_protocol.runtime import LinkState
from ..output import json_option, print_json
from ..policy_option import policy_option
from .facts import at_option, fact_option, with_facts

STRICT = 6  # exit code of a gate that failed


@click.command()
@policy_option(required=True)
@click.option("--input", "input_file", type=click.Path(dir_okay=False), help="Prompts (JSON lines): which rules decide them?")
@click.option("--strict", is_flag=True, help=f"Warnings exit {STRICT}.")
@click.option("--ignore", "ignored", multiple=True, type=click.Choice(CODES), help="A kind of warning that is meant to be.")
@fact_option
@at_option
@json_option
@click.pass_context
def lint(
    ctx: click.Context,
    policy_file: str,
    input_file: str | None,
    strict: bool,
    ignored: tuple[str, ...],
    facts: tuple[str, ...],
    at: str | None,
    as_json: bool,
) -> None:
    """Check a policy: errors, rules that never decide, keys that change nothing; with --input also overlaps and gaps.

    Exits 5 for a policy that cannot be loaded, 0 otherwise; with --strict, 6 when there are warnings.
    """
    try:
        policy = Policy.load(policy_file)
    except ConfigError as error:
        if as_json:
            print_json({"policy": policy_file, "error": {"key": error.param, "message": str(error)}, "warnings": [], "coverage": None})
            ctx.exit(error.exit_code)
        raise
    name = policy_file.removeprefix(PRESET)
    text = presets()[name] if name != policy_file else Path(policy_file).read_text(encoding="utf-8")
    warned = lint_policy(policy, text)
    found = None
    if input_file is not None:
        from ....router.evaluate.rows import read_rows

        context = RouteContext(
            link=LinkState(reachable=True),
            quota=full_view(policy.quota),
            speculation=SpeculationFacts(),
        )
        found = cover(policy, (row.request for row in read_rows(input_file)), with_facts(context, facts, at))
        warned += lint_coverage(policy, text, found)
    warned = [one for one in warned if one.code not in ignored]
    if as_json:
        print_json({"policy": policy_file, "error": None, "warnings": [_json(one) for one in warned], "coverage": _coverage(policy, found)})
    else:
        for one in warned:
            where = f"{policy_file}:{one.line}" if one.line else policy_file
            click.echo(f"{where}: {one.key} {one.message} [{one.code}]")
        click.echo(f"{policy_file}: policy {policy.hash}, rules: {len(policy.rules)}, warnings: {len(warned)}")
    if strict and warned:
        ctx.exit(STRICT)


def _json(one: Warned) -> dict[str, Any]:
    return {"code": one.code, "key": one.key, "line": one.line, "message": one.message}


def _coverage(policy: Policy, found: Coverage | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "prompts": found.prompts,
        "no_rule": found.unmatched,
        "rules": [
            {
                "name": one.rule.name,
                "decided": found.decided[one.rule.name],
                "true": found.true[one.rule.name],
                "unknown": found.unknown[one.rule.name],
                "errors": found.errors[one.rule.name],
            }
            for one in policy.compiled_rules
        ],
        "overlaps": [{"first": first, "second": second, "prompts": count} for (first, second), count in found.overlaps.most_common()],
    }
