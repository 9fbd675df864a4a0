"""Who is there, and whose context is long enough: the second stage of a decision."""

from __future__ import annotations

from dataclasses import dataclass

from .decision import Reason
from .request import RouteContext


@dataclass(frozen=True, slots=True)
class Out:
    """Why a side cannot take part."""

    reason: Reason
    rule: str
    why: str


def edge_out(needed: int, context: RouteContext) -> Out | None:
    """None where the device can answer. `needed`: tokens of prompt and answer."""
    device = context.device
    if not device.edge_available:
        return Out("edge_unavailable", "capability.edge", "no model answers on the device")
    if needed > device.edge_context:
        return Out("too_long", "capability.edge_context", f"{needed} tokens do not fit the device's context of {device.edge_context}")
    return None


def edge_weak(tokens: int, context: RouteContext) -> Out | None:
    """Why the policy would rather spare the device, which can answer. `tokens`: of the prompt."""
    device, limits = context.device, context.policy.edge
    if tokens > limits.max_prompt_tokens:
        return Out("too_long", "edge.max_prompt_tokens", f"{tokens} prompt tokens, the device may have {limits.max_prompt_tokens}")
    if device.battery is not None and device.battery < limits.min_battery:
        return Out("edge_unavailable", "edge.min_battery", f"battery at {device.battery:.0%}, below {limits.min_battery:.0%}")
    if device.thermal_headroom is not None and device.thermal_headroom < limits.min_thermal_headroom:
        return Out("edge_unavailable", "edge.min_thermal_headroom", "the device is too hot")
    return None


def cloud_out(needed: int, context: RouteContext) -> Out | None:
    """None where the cloud can answer."""
    link = context.link
    if not link.reachable:
        return Out("cloud_unreachable", "capability.cloud", "the cloud cannot be reached")
    if link.cloud_context is not None and needed > link.cloud_context:
        return Out("too_long", "capability.cloud_context", f"{needed} tokens do not fit the cloud's context of {link.cloud_context}")
    return None
