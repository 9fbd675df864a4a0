"""What the cloud would get of a request that a policy redacts: for the terminal of the person who wrote it, and nowhere else."""

from __future__ import annotations

from typing import Any

from ....router.policy.policy import Policy
from ....router.privacy import LocalOnly, clear
from ....router.redact.mapping import RedactionMapping
from ....router.request import RouteRequest


def shown_redacted(request: RouteRequest, policy: Policy, mapping: RedactionMapping) -> dict[str, Any] | None:
    """Messages, tools and stop strings as they would be sent, whoever would answer; None for what may not leave the device."""
    cleared = clear(request, policy, "public", mapping)
    if isinstance(cleared, LocalOnly):
        return None
    sent = cleared.value
    return {"messages": sent.to_openai(), "tools": list(sent.tools), "stop": list(sent.sampling.stop)}


def redacted_lines(shown: dict[str, Any] | None) -> list[str]:
    if shown is None:
        return ["", "Nothing of it may be sent."]
    lines = ["", "What would be sent:"]
    for message in shown["messages"]:
        calls = [f"{call['function']['name']} {call['function']['arguments']}" for call in message.get("tool_calls", ())]
        lines += [f"{message['role']}: {text}" for text in [message["content"], *calls] if text is not None]
    return lines + [f"tool: {tool}" for tool in shown["tools"]] + [f"stop: {stop}" for stop in shown["stop"]]
