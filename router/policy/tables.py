"""The tables of a policy file, a struct each: a key is a field with its range and a sentence for the JSON schema.

`default.toml` documents every key again and holds its default. `policy_file.py` reads a file by these structs; `schema.py` publishes them.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ..verdict import Verdict

# A number always has both bounds: they also keep out what is no number, and infinity.
Finding = Verdict
# A secret lets somebody in, and a topic is what all of a text is about: a placeholder for it would hide nothing.
Whole = Literal["public", "local_only", "block"]
# What the device's answer is judged by (confidence/signals.py).
Signal = Literal[
    "blend",
    "mean",
    "quantile",
    "minimum",
    "total",
    "length_corrected",
    "margin",
    "margin_quantile",
    "entropy",
    "entropy_quantile",
    "probe",
    "p_true",
    "agreement",
    "none",
]
Phrase = Annotated[
    str,
    Meta(title="words or phrases of up to four words, in lower case", pattern=r"^[^A-Z\s]+(\s+[^A-Z\s]+){0,3}$", max_length=100),
]
Region = Annotated[str, Meta(title="regions, two capital letters each", pattern=r"^[A-Z]{2}$")]
Name = Annotated[str, Meta(title="names of plug-ins", pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


TokenLimit = Annotated[int, Meta(ge=0, le=2**40)] | Literal["unlimited"]
MoneyLimit = Annotated[float, Meta(ge=0, le=1e9)] | Literal["unlimited"]


class ModelPrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of a prompt's token and of an answer's."""

    input: Annotated[float, Meta(ge=0, le=1e9)]
    output: Annotated[float, Meta(ge=0, le=1e9)]


class PrivacyPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a finding of each kind means for the whole conversation, from now on."""

    email: Annotated[Finding, Meta(description="E-mail addresses.")]
    phone: Annotated[Finding, Meta(description="Phone numbers.")]
    card: Annotated[Finding, Meta(description="Payment card numbers whose check digit holds.")]
    iban: Annotated[Finding, Meta(description="Bank accounts whose check digits hold.")]
    ssn: Annotated[Finding, Meta(description="Social security numbers of the United States.")]
    national_id: Annotated[Finding, Meta(description="Numbers that a state gives a person, of `regions`.")]
    wallet: Annotated[Finding, Meta(description="Addresses of crypto currencies.")]
    ip: Annotated[Finding, Meta(description="Addresses of machines.")]
    mac: Annotated[Finding, Meta(description="Addresses of network cards.")]
    url: Annotated[Finding, Meta(description="Addresses of the web.")]
    date: Annotated[Finding, Meta(description="Dates.")]
    secret: Annotated[Whole, Meta(description="Private keys, API keys, tokens, passwords.")]
    topic: Annotated[Whole, Meta(description="One of topic_words or more_topic_words occurs.")]
    person: Annotated[Finding, Meta(description="Names of persons; needs a plug-in.")]
    place: Annotated[Finding, Meta(description="Names of places; needs a plug-in.")]
    organization: Annotated[Finding, Meta(description="Names of organizations; needs a plug-in.")]
    other: Annotated[Finding, Meta(description="What a plug-in finds of a kind that has no key here.")]
    unreadable: Annotated[Literal["local_only", "block"], Meta(description="What no detector could judge: it fails closed.")]
    regions: Annotated[tuple[Region, ...], Meta(max_length=64, description="Whose phone numbers and national numbers are known.")]
    detectors: Annotated[tuple[Name, ...], Meta(max_length=16, description="Plug-ins that search too; one that fails is unreadable.")]
    detector_deadline_ms: Annotated[int, Meta(ge=1, le=60_000, description="All plug-ins together are waited for so long.")]
    topic_words: Annotated[tuple[Phrase, ...], Meta(max_length=10_000, description="Words that make a conversation private.")]
    more_topic_words: Annotated[tuple[Phrase, ...], Meta(max_length=10_000, description="More of them, beside those of topic_words.")]
    max_characters: Annotated[int, Meta(ge=1, le=10_000_000, description="A longer conversation counts as unreadable.")]
    too_hard_from: Annotated[float, Meta(ge=0, le=1, description="A private conversation of this complexity or more is refused.")]


PERSONAL = ("email", "phone", "card", "iban", "ssn", "national_id", "wallet", "ip", "mac", "url", "date", "person", "place", "organization")
KINDS = (*PERSONAL, "secret", "topic", "unreadable")  # the keys that hold a verdict


def verdict_of(kind: str, privacy: PrivacyPolicy) -> Verdict:
    """What a finding of `kind` means. Kinds of plug-ins that have no key share one."""
    verdict: Verdict = getattr(privacy, kind if kind in KINDS else "other")
    return verdict


class ComplexityPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bands of the complexity score: 0 -- edge -- cascade_from -- cascade -- hard_from -- cloud -- 1."""

    cascade_from: Annotated[float, Meta(ge=0, le=1, description="Below it the device answers. Not above hard_from.")]
    hard_from: Annotated[float, Meta(ge=0, le=1, description="From it on the cloud is needed.")]


class LearnedPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A router that has learned from outcomes takes the place of the complexity's rules, where it knows such prompts."""

    model: Annotated[str, Meta(max_length=4096, description="Its file, from the policy's folder on. Empty: the rules decide.")]
    abstain_above: Annotated[float, Meta(ge=0, le=1, description="It abstains where so much of a prompt is unknown to it.")]
    abstain_errors: Annotated[float, Meta(ge=0, le=10, description="Or where so many standard errors of the gain span both bands.")]


class ConfidencePolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When the device's answer of a cascade is kept."""

    signal: Annotated[Signal, Meta(description="What it is judged by. none: it is kept without being judged.")]
    threshold: Annotated[float, Meta(ge=0, le=1, description="It is kept from this confidence on.")]
    gate: Annotated[str, Meta(max_length=4096, description="From the policy's folder on: what the signal means.")]
    error_rate: Annotated[float, Meta(ge=0, le=1, description="Kept where the gate promises this rate of errors; 0: use threshold.")]
    samples: Annotated[int, Meta(ge=1, le=16, description="More answers that are drawn for the signal agreement.")]
    stop_after: Annotated[int, Meta(ge=1, le=2**40, description="Tokens before an answer can be given up in mid-text.")]
    stop_below: Annotated[float, Meta(ge=0, le=1, description="Given up where its tokens' mean probability is lower. 0: never.")]
    quantile: Annotated[float, Meta(ge=0, le=1, description="Which quantile of the token probabilities is looked at.")]
    quantile_weight: Annotated[float, Meta(ge=0, le=1, description="What it weighs against their geometric mean.")]


class CascadePolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the cloud is asked when the device's answer is not kept."""

    draft_as_context: Annotated[bool, Meta(description="It gets the device's answer as well, unless that is private.")]


class QuotaPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much of the cloud may be used: buckets that fill at a steady rate, all of which must admit a request."""

    capacity: Annotated[TokenLimit, Meta(description="Tokens per user. 0 lets nothing through.")]
    refill_per_s: Annotated[float, Meta(ge=0, le=1e12, description="Tokens per second.")]
    tenant_capacity: Annotated[TokenLimit, Meta(description="Tokens of all users of a tenant together.")]
    tenant_refill_per_s: Annotated[float, Meta(ge=0, le=1e12, description="Tokens per second.")]
    model_capacity: Annotated[TokenLimit, Meta(description="Tokens of each model that is asked for.")]
    model_refill_per_s: Annotated[float, Meta(ge=0, le=1e12, description="Tokens per second.")]
    budget: Annotated[MoneyLimit, Meta(description="Money per user, in the currency of [price].")]
    budget_refill_per_s: Annotated[float, Meta(ge=0, le=1e9, description="Money per second.")]
    rejected_capacity: Annotated[TokenLimit, Meta(description="Drafted tokens per user that the cloud may reject.")]
    rejected_refill_per_s: Annotated[float, Meta(ge=0, le=1e12, description="Tokens per second.")]
    assumed_output: Annotated[int, Meta(ge=1, le=2**40, description="Tokens kept free for an answer of unknown length.")]
    lease_s: Annotated[float, Meta(ge=1, le=86400, description="Tokens of an answer that never settles come back after this time.")]
    on_exhausted: Annotated[Literal["degrade", "refuse"], Meta(description="The device answers instead, or nobody.")]
    on_store_failure: Annotated[
        Literal["refuse", "admit", "allowance"],
        Meta(description="A store of quotas that is slow or broken: nothing left, no limit, or what the offline allowance holds."),
    ]


class PricePolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the cloud's tokens cost, in one currency of the owner's choice."""

    per: Annotated[Literal["token", "million"], Meta(description="What a price is for.")]
    models: Annotated[
        dict[str, ModelPrice],
        Meta(description='Per model that is asked for; "*" is any other one, and the cloud\'s own choice.'),
    ]
    unpriced: Annotated[Literal["unknown", "dearest"], Meta(description="A model without a price costs nobody knows what, or the most.")]


class FallbackPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who is asked when somebody fails."""

    attempts: Annotated[int, Meta(ge=1, le=100, description="Attempts per request, over all targets, the device included.")]
    retries: Annotated[int, Meta(ge=0, le=10, description="How often a target that failed, but is not busy, is asked again.")]
    cooldown_s: Annotated[float, Meta(ge=0, le=3600, description="How long a target that failed is not asked.")]
    max_cooldown_s: Annotated[float, Meta(ge=0, le=86400, description="The longest that a busy target's Retry-After is believed.")]
    mid_stream: Annotated[
        Literal["error", "restart", "continue_marked"],
        Meta(description="An answer that breaks off after its first words: an error, all of it again, or the device goes on."),
    ]


class EdgePolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When the device counts as unavailable for what the cloud may answer too."""

    min_battery: Annotated[float, Meta(ge=0, le=1, description="Below this share of a full battery.")]
    min_thermal_headroom: Annotated[float, Meta(ge=0, le=1, description="Below this: 0 is throttled, 1 is cool.")]
    max_prompt_tokens: Annotated[int, Meta(ge=0, le=2**40, description="For longer prompts (tokens).")]


class SpeculationPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When the device drafts and the cloud verifies."""

    mode: Annotated[Literal["auto", "always", "off"], Meta(description="auto: when measured times say that it is faster.")]
    draft_below: Annotated[float, Meta(ge=0, le=1, description="Hard prompts below this complexity are drafted.")]
    max_draft: Annotated[int, Meta(ge=1, le=64, description="Tokens drafted per round.")]
    min_gain: Annotated[float, Meta(ge=1, le=1e6, description="auto drafts when it is so many times faster.")]
