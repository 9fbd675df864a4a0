"""Which detectors a policy asks for: ours, as far as the policy minds what they find, and the plug-ins that it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial

from ..policy import PrivacyPolicy, verdict_of
from .accounts import find_cards, find_ibans
from .detector import Rule
from .network import find_addresses, find_emails
from .phones import find_phones
from .plugin import Plugin, plugin
from .secrets import find_secrets
from .topics import find_topics

OURS: Mapping[str, Callable[[PrivacyPolicy], Rule]] = {
    "email": lambda policy: Rule("email", ("email",), find_emails),
    "phone": lambda policy: Rule("phone", ("phone",), find_phones),
    "card": lambda policy: Rule("card", ("card",), find_cards),
    "iban": lambda policy: Rule("iban", ("iban",), find_ibans),
    "ip": lambda policy: Rule("ip", ("ip",), find_addresses),
    "secret": lambda policy: Rule("secret", ("secret",), find_secrets),
    "topic": lambda policy: Rule("topic", ("topic",), partial(find_topics, topics=policy.topic_words)),
}


@lru_cache(maxsize=64)
def detectors_of(policy: PrivacyPolicy) -> tuple[tuple[Rule, ...], tuple[Plugin, ...]]:
    """Our detectors with a kind that is not public, and the plug-ins. What is public anyway is not looked for."""
    rules = (make(policy) for make in OURS.values())
    wanted = tuple(rule for rule in rules if any(verdict_of(kind, policy) != "public" for kind in rule.kinds))
    return wanted, tuple(plugin(name) for name in policy.detectors)
