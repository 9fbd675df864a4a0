"""A record holds no text, and another policy decides on it as it would have decided on the request."""

import json
from dataclasses import replace

import pytest
from hybrid.router.decide import decide
from hybrid.router.evaluate.replay import at, usual
from hybrid.router.policy.policy import Policy, presets
from hybrid.router.quota import QuotaView
from hybrid.router.record import decode, keyed, record_of, redecide
from hybrid.router.request import RouteContext, RouteRequest
from hybrid.shared_protocol.errors import InvalidRequest
from hybrid.shared_protocol.runtime import DeviceState, LinkState
from msgspec import json as encoder
from msgspec.structs import replace as changed

KEY = b"k" * 32
PROMPTS = (
    "hello",
    "Write a Python function that reverses a string.",
    "Design a distributed rate limiter, analyse its failure modes, and implement it in Rust.",
    "Prove it, step by step. " * 12,
    "and then " * 30,
    "mail bob@example.com",
    "Prove step by step that bob@example.com is an address, and implement a parser for it in Rust.",
    "What does AKIAIOSFODNN7EXAMPLE open?",
)
POLICIES = {
    "default": "",
    "bands": "[complexity]\ncascade_from = 0.1\nhard_from = 0.2",
    "strict": "[privacy]\ntoo_hard_from = 0.1\n[edge]\nmax_prompt_tokens = 20",
    "rules": '[[rule]]\nname = "long"\nwhen = "tokens > 30"\nroute = "cloud"\npriority = 2\n'
    '[[rule]]\nname = "home"\nwhen = "battery > 0.5 && task != \'code\'"\nroute = "edge"\nunknown = "match"\nfallback = false\n'
    '[[rule]]\nname = "none"\nwhen = "code"\nroute = "refuse"\npriority = 1',
    "refuse": '[quota]\non_exhausted = "refuse"\ncapacity = 100',
} | presets()
SURROUNDINGS = {
    "usual": usual,
    "alone": lambda policy: RouteContext(policy=policy),
    "no device": lambda policy: RouteContext(policy=policy, device=DeviceState(edge_available=False), link=LinkState(reachable=True)),
    "short": lambda policy: RouteContext(policy=policy, device=DeviceState(edge_context=40, battery=0.6), link=LinkState(reachable=True)),
    "spent": lambda policy: replace(usual(policy), quota=QuotaView(15.0, 1e9, 1.0)),
    "low": lambda policy: at(
        3600.0, RouteContext(policy=policy, device=DeviceState(battery=0.1), link=LinkState(reachable=True, rtt_s=0.1))
    ),
}


@pytest.mark.parametrize("where", SURROUNDINGS)
@pytest.mark.parametrize("after", POLICIES)
def test_a_policy_decides_on_the_record_as_on_the_request(after: str, where: str) -> None:
    """Where both policies judge privacy alike: that is what the record says it takes as it was."""
    for before in ("default", "bands"):
        old, new = Policy.parse(POLICIES[before]), Policy.parse(POLICIES[after])
        new = changed(new, privacy=changed(old.privacy, too_hard_from=new.privacy.too_hard_from), price=old.price)
        new = changed(new, quota=changed(new.quota, assumed_output=old.quota.assumed_output))
        old_context, new_context = SURROUNDINGS[where](old), SURROUNDINGS[where](new)
        new_context = replace(new_context, quota=old_context.quota)
        for prompt in PROMPTS:
            request = RouteRequest.of(prompt, max_tokens=9)
            record = record_of(request, old_context, decide(request, old_context), key=KEY, time=1.0)
            expected, found = decide(request, new_context), redecide(decode(encoder.encode(record), "x"), new)
            assert (found.route, found.reason, found.rule) == (expected.route, expected.reason, expected.rule), prompt


def test_no_word_of_the_request_and_no_name_is_in_a_record() -> None:
    request = RouteRequest.of("swordfish, mail bob@example.com", user="annabel", tenant="acme-corp", tools=[{"name": "torpedo"}])
    context = usual(Policy.default())
    record = record_of(request, context, decide(request, context), key=KEY, time=5.0)
    written = encoder.encode(record).decode()
    assert not any(word in written for word in ("swordfish", "bob", "example.com", "annabel", "acme", "torpedo"))
    assert record.kinds == {"email": 1} and record.verdict == "local_only" and record.values["tools"] == 1
    assert {type(value) for value in record.values.values()} <= {int, float, bool, str}
    texts = [value for value in record.values.values() if isinstance(value, str)]
    assert all(len(value) <= 12 for value in texts)  # a task, a language


def test_hashes_are_equal_under_one_key_only() -> None:
    assert keyed(KEY, "user", "ann") == keyed(KEY, "user", "ann") != keyed(b"other", "user", "ann")
    assert keyed(KEY, "prompt", "ann") != keyed(KEY, "user", "ann")
    context = usual(Policy.default())

    def hashed(text: str) -> str:
        request = RouteRequest.of(text)
        return record_of(request, context, decide(request, context), key=KEY, time=0.0).prompt

    assert hashed("one") == hashed("one") != hashed("two")


def test_a_line_that_is_no_record_is_refused() -> None:
    context, request = usual(Policy.default()), RouteRequest.of("hi")
    good = json.loads(encoder.encode(record_of(request, context, decide(request, context), key=KEY, time=0.0)))
    for bad in ({}, good | {"text": "hi"}, good | {"v": 2}, good | {"route": "moon"}, good | {"time": "noon"}, good | {"failed": 10**15}):
        with pytest.raises(InvalidRequest, match="x:1: no record"):
            decode(json.dumps(bad), "x:1")
    assert decode(json.dumps(good), "x:1").rule == good["rule"]
