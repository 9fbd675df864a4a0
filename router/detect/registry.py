"""Which detectors a policy asks for: ours, as far as the policy minds what they find, and the plug-ins that it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial

from ..policy.tables import PrivacyPolicy, verdict_of
from .accounts import find_cards, find_ibans
from .dates import find_dates
from .detector import Rule
from .hardware import find_macs, find_wallets
from .national import find_national_ids, find_ssns
from .network import find_addresses, find_emails
from .phones import find_phones
from .plugin import Plugin, plugin
from .secrets import find_secrets
from .topics import find_topics
from .web import find_urls

OURS: Mapping[str, Callable[[PrivacyPolicy], Rule]] = {
    "email": lambda policy: Rule("email", ("email",), find_emails),
    "phone": lambda policy: Rule("phone", ("phone",), partial(find_phones, regions=policy.regions)),
    "card": lambda policy: Rule("card", ("card",), find_cards),
    "iban": lambda policy: Rule("iban", ("iban",), find_ibans),
    "ssn": lambda policy: Rule("ssn", ("ssn",), find_ssns),
    "national_id": lambda policy: Rule("national_id", ("national_id",), partial(find_national_ids, regions=policy.regions)),
    "wallet": lambda policy: Rule("wallet", ("wallet",), find_wallets),
    "url": lambda policy: Rule("url", ("url",), find_urls),
    "mac": lambda policy: Rule("mac", ("mac",), find_macs),
    "date": lambda policy: Rule("date", ("date",), find_dates),
    "ip": lambda policy: Rule("ip", ("ip",), find_addresses),
    "secret": lambda policy: Rule("secret", ("secret",), find_secrets),
    "topic": lambda policy: Rule("topic", ("topic",), partial(find_topics, topics=policy.topic_words + policy.more_topic_words)),
}


@lru_cache(maxsize=64)
def detectors_of(policy: PrivacyPolicy) -> tuple[tuple[Rule, ...], tuple[Plugin, ...]]:
    """Our detectors with a kind that is not public, and the plug-ins. What is public anyway is not looked for."""
    rules = (make(policy) for make in OURS.values())
    wanted = tuple(rule for rule in rules if any(verdict_of(kind, policy) != "public" for kind in rule.kinds))
    return wanted, tuple(plugin(name) for name in policy.detectors)
