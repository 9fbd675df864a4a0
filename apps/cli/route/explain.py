"""`hybrid route explain`, or `hybrid route PROMPT`: where a prompt would be answered, and why. It sends and generates nothing."""

from __future__ import annotations

import sys
from typing import Any

import click
import msgspec

from ....router.complexity.complexity import Parts
from ....router.decide import decide, scene_of
from ....router.decision import Decision
from ....router.plan import SpeculationFacts
from ....router.policy.policy import Policy
from ....router.policy.rules import trace_all
from ....router.policy.variables import Values
from ....router.quota.quotas import full_view
from ....router.redact.mapping import RedactionMapping
from ....router.request import RouteContext, RouteRequest, TokenCounter
from ....shared_protocol.bounded_file import read_at_most
from ....shared_protocol.errors import InvalidRequest, NotFound
from ....shared_protocol.runtime import DeviceState, LinkState
from ..policy_option import policy_option
from .facts import at_option, fact_option, with_facts
from .learned import learned_json, learned_lines
from .redacted import redacted_lines, shown_redacted
from .trace import trace_json, trace_lines, value_lines

MAX_MESSAGES_BYTES = 2**28
BAR = 20  # characters of a full bar


@click.command()
@click.argument("prompt", required=False)
@click.option("--messages", type=click.Path(dir_okay=False), help="A JSON file with a list of messages, or an object with one.")
@policy_option()
@click.option("--tenant", help="For whom the user asks.")
@fact_option
@at_option
@click.option("--user", default="local", show_default=True, help="Whose quota is asked; taken as full here.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="Length of the answer that is asked for.")
@click.option("--model", help="Count tokens with this model's tokenizer (an id of the store, or a path).")
@click.option("--no-device", is_flag=True, help="As if no model answered on the device.")
@click.option("--no-cloud", is_flag=True, help="As if the cloud could not be reached.")
@click.option("--show-redacted", is_flag=True, help="Print what the cloud would get, with placeholders for what the policy redacts.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain(
    prompt: str | None,
    messages: str | None,
    policy_file: str | None,
    tenant: str | None,
    facts: tuple[str, ...],
    at: str | None,
    user: str,
    max_tokens: int | None,
    model: str | None,
    no_device: bool,
    no_cloud: bool,
    show_redacted: bool,
    as_json: bool,
) -> None:
    """Explain where PROMPT would be answered, and why ("-" reads it from standard input).

    Nothing leaves this machine. A device and a reachable cloud are assumed, and a user with a full quota; --fact changes what rules
    look at. A refusal is an explanation too: the exit code is 0.
    """
    policy = Policy.load(policy_file) if policy_file else Policy.default()
    request = RouteRequest.of(_messages(prompt, messages), max_tokens=max_tokens, user=user, tenant=tenant)
    context = RouteContext(
        policy=policy,
        device=DeviceState(edge_available=not no_device),
        link=LinkState(reachable=not no_cloud),
        quota=full_view(policy.quota),
        count_tokens=_counter(model) if model else None,
        speculation=SpeculationFacts(),
        redaction=RedactionMapping.of_a_dry_run(),
    )
    context = with_facts(context, facts, at)
    decision = decide(request, context)
    values = Values(scene_of(request, context))
    traced = trace_all(policy.compiled_rules, values)
    sent = shown_redacted(request, policy, RedactionMapping.of_a_dry_run()) if show_redacted else None
    if not as_json:
        learned = learned_lines(policy, request, decision)
        rules = [*trace_lines(decision, traced), *value_lines(policy.compiled_rules, values)]
        lines = [describe(decision, policy), *learned, *rules, *(redacted_lines(sent) if show_redacted else ())]
        click.echo("\n".join(lines))
        return
    shown = msgspec.to_builtins(decision.report()) | ({"sent": sent} if show_redacted else {}) | learned_json(policy, request, decision)
    click.echo(msgspec.json.encode(shown | trace_json(decision, traced) if traced else shown).decode())


def describe(decision: Decision, policy: Policy) -> str:
    """The decision as aligned lines for a person."""
    bands = policy.complexity
    counted = "" if decision.provenance.tokens == "exact" else " (estimated: bytes / 3.6; --model counts them)"
    lines = [
        ("route", decision.route),
        ("reason", decision.reason),
        ("rule", decision.rule),
        ("why", decision.why),
        ("privacy", decision.scores.privacy + _findings(decision)),
        *([("redacted", _replaced(decision))] if decision.assessment.replaced else []),
        ("complexity", f"{_bar(decision.scores.complexity)} {decision.scores.complexity:.2f}{_origin(decision)}"),
        ("bands", f"edge < {bands.cascade_from:g} <= cascade < {bands.hard_from:g} <= cloud"),
        ("tokens", f"{decision.prompt_tokens} in the prompt{counted}"),
    ]
    if decision.plan is not None and decision.route in ("cloud", "speculative"):
        lines.append(("drafting", f"{decision.plan.mode}: {decision.plan.why}"))
    version = f" ({decision.provenance.policy_version})" if decision.provenance.policy_version else ""
    lines.append(("policy", decision.provenance.policy_hash + version))
    return "\n".join(f"{name:<11}{value}" for name, value in lines)


def _findings(decision: Decision) -> str:
    found = [f"{count} {kind}" for kind, count in decision.assessment.findings.items()]
    return f" ({', '.join(found)})" if found else ""


def _replaced(decision: Decision) -> str:
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(decision.assessment.replaced.items()))
    return f"placeholders for {told}" + ("" if decision.replaced else ", if it were sent")


def _origin(decision: Decision) -> str:
    learned = decision.opinion is not None and decision.opinion.score is not None
    return " (of the learned router)" if learned else _parts(decision.parts)


def _parts(parts: Parts) -> str:
    shares = sorted(((share, name) for name, share in msgspec.structs.asdict(parts).items() if share >= 0.005), reverse=True)
    return f" ({', '.join(f'{name} {share:.2f}' for share, name in shares)})" if shares else ""


def _bar(score: float) -> str:
    full = round(score * BAR)
    return "#" * full + "." * (BAR - full)


def _messages(prompt: str | None, file: str | None) -> Any:
    if (prompt is None) == (file is None):
        raise click.UsageError("give either a PROMPT or --messages FILE")
    if file is None:
        return sys.stdin.buffer.read().decode("utf-8", "surrogateescape") if prompt == "-" else prompt
    try:
        found = msgspec.json.decode(read_at_most(file, MAX_MESSAGES_BYTES))
    except OSError as error:
        raise NotFound(f"{file}: {error.strerror}", hint="name a JSON file") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidRequest(f"{file} is no JSON: {error}", param="messages") from None
    if isinstance(found, dict):
        if "messages" not in found:
            raise InvalidRequest(f"{file} is an object without messages", param="messages", hint="give it the key messages, or give a list")
        return found["messages"]
    return found


def _counter(model: str) -> TokenCounter:
    from ....shared_protocol.model import load_model

    loaded = load_model(model)
    return lambda request: len(loaded.render_chat(request.to_openai()))
