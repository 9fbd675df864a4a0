"""What each route would take: seconds, tokens and money, from a handful of measured numbers. Unknown stays unknown."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from .policy.tables import ModelPrice, PricePolicy

ANY = "*"  # any model that the policy does not name


@dataclass(frozen=True, slots=True)
class CostModel:
    """Measured or configured; None is unknown. Prices are in one currency of the owner's choice, per token."""

    edge_prefill_s: float | None = None  # seconds per prompt token
    edge_decode_s: float | None = None  # seconds per output token
    cloud_prefill_s: float | None = None
    cloud_decode_s: float | None = None
    price_in: float | None = None
    price_out: float | None = None


class Expected(msgspec.Struct, frozen=True):
    """`tokens` are those of the prompt and the answer that the cloud bills; 0 for the device. Time or cost may be unknown, not both."""

    seconds: float | None
    tokens: int
    cost: float | None


def priced(costs: CostModel, policy: PricePolicy, model: str | None) -> CostModel:
    """`costs` with the policy's prices of `model` (None: the cloud's own choice), where it has none of its own."""
    found = policy.models.get(model or ANY) or policy.models.get(ANY)
    if found is None and policy.unpriced == "dearest" and policy.models:
        known = policy.models.values()
        found = ModelPrice(input=max(price.input for price in known), output=max(price.output for price in known))
    if found is None:
        return costs
    tokens = 1_000_000 if policy.per == "million" else 1
    return replace(
        costs,
        price_in=found.input / tokens if costs.price_in is None else costs.price_in,
        price_out=found.output / tokens if costs.price_out is None else costs.price_out,
    )


def edge_seconds(costs: CostModel, prompt: int, output: int) -> float | None:
    if costs.edge_prefill_s is None or costs.edge_decode_s is None:
        return None
    return prompt * costs.edge_prefill_s + output * costs.edge_decode_s


def cloud_seconds(costs: CostModel, prompt: int, output: int, rtt_s: float | None) -> float | None:
    if costs.cloud_prefill_s is None or costs.cloud_decode_s is None or rtt_s is None:
        return None
    return rtt_s + prompt * costs.cloud_prefill_s + output * costs.cloud_decode_s


def cloud_price(costs: CostModel, prompt: int, output: int) -> float | None:
    if costs.price_in is None or costs.price_out is None:
        return None
    return prompt * costs.price_in + output * costs.price_out


def expected_costs(
    costs: CostModel, *, prompt: int, output: int, edge: bool, cloud: bool, rtt_s: float | None, sync_s: float | None
) -> dict[str, Expected | None]:
    """Per route what `prompt` and `output` tokens would take; None where a number is unknown or a side cannot take part.

    A cascade is shown at its worst: the device's answer, then the cloud's. `sync_s`: seconds per token of a speculative answer.
    """
    local = edge_seconds(costs, prompt, output) if edge else None
    remote = cloud_seconds(costs, prompt, output, rtt_s) if cloud else None
    price = cloud_price(costs, prompt, output)
    billed = prompt + output
    both = edge and remote is not None
    drafted = None
    if both and sync_s is not None and costs.cloud_prefill_s is not None and rtt_s is not None:
        drafted = rtt_s + prompt * costs.cloud_prefill_s + output * sync_s
    return {
        "edge": None if local is None else Expected(local, 0, 0.0),
        "cloud": _billed(remote, billed, price) if cloud else None,
        "cascade": _billed(local + remote if local is not None and remote is not None else None, billed, price) if edge and cloud else None,
        "speculative": None if drafted is None else _billed(drafted, billed, price),
    }


def _billed(seconds: float | None, tokens: int, price: float | None) -> Expected | None:
    return None if seconds is None and price is None else Expected(seconds, tokens, price)
