"""What lint says of a policy that loads, and of its rules over prompts."""

import re
from pathlib import Path

import pytest
from hybrid.router.policy.lint import CODES, cover, lint_coverage, lint_policy
from hybrid.router.policy.policy import Policy, presets
from hybrid.router.request import Moment, RouteContext, RouteRequest
from hybrid.shared_protocol.runtime import DeviceState, LinkState
from hybrid.tests.support.deciding import HARD, SIMPLE, UNCERTAIN

AT_NIGHT = RouteContext(link=LinkState(reachable=True), moment=Moment(3, 1))


def rule(name: str, when: str, route: str = "edge", **keys: object) -> str:
    return f'[[rule]]\nname = "{name}"\nwhen = "{when}"\nroute = "{route}"\n' + "".join(
        f"{key} = '{value}'\n" for key, value in keys.items()
    )


def static(text: str) -> list[tuple[str, str, int]]:
    return [(warned.code, warned.key, warned.line) for warned in lint_policy(Policy.parse(text), text)]


def dynamic(text: str, *prompts: str, context: RouteContext = AT_NIGHT) -> list[tuple[str, str, int]]:
    policy = Policy.parse(text)
    found = cover(policy, [RouteRequest.of(prompt) for prompt in prompts], context)
    return [(warned.code, warned.key, warned.line) for warned in lint_coverage(policy, text, found)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (rule("a", "code") + rule("b", " code "), [("rule-shadowed", "rule.b", 7)]),
        (rule("a", "code") + rule("b", "code", unknown="refuse"), []),  # it decides where the first is skipped
        (rule("a", "1 > 2"), [("rule-never", "rule.a", 3)]),
        (rule("a", "tokens < 0"), [("rule-never", "rule.a", 3)]),
        (rule("a", "battery > 50.0"), [("rule-never", "rule.a", 3)]),
        (rule("a", "hour == 24 || weekday == 8"), [("rule-never", "rule.a", 3)]),
        (rule("a", "tokens > 5000 * 2 && battery < 0.05"), []),
        (rule("a", "true", unknown="match"), [("rule-unknown", "rule.a", 5)]),
        ("[confidence]\nthreshold = 0.4\n[complexity]\ncascade_from = 0.5\nhard_from = 0.5", [("key-unused", "confidence.threshold", 2)]),
        ("[confidence]\nthreshold = 0.4\n[complexity]\nhard_from = 0.35\n" + rule("a", "code", "cascade"), []),
        ("[confidence]\nerror_rate = 0.1", [("key-unused", "confidence.error_rate", 2)]),
        ('[confidence]\nerror_rate = 0.1\ngate = "g"', [("file-missing", "confidence.gate", 3)]),
        (
            '[confidence]\nthreshold = 0.4\nerror_rate = 0.1\ngate = "g"',
            [("key-unused", "confidence.threshold", 2), ("file-missing", "confidence.gate", 4)],
        ),
        ("[confidence]\nsamples = 5", [("key-unused", "confidence.samples", 2)]),
        ('[confidence]\nsignal = "agreement"\nsamples = 5', []),
        ('[confidence]\nsignal = "none"\nthreshold = 0.4', [("key-unused", "confidence.threshold", 3)]),
        ('[speculation]\nmode = "off"\nmax_draft = 3', [("key-unused", "speculation.max_draft", 3)]),
        ("[speculation]\ndraft_below = 0.2", [("key-unused", "speculation.draft_below", 2)]),
        ("[quota]\ncapacity = 0\nrefill_per_s = 5", [("key-unused", "quota.refill_per_s", 3)]),
        ('[privacy]\ntopic = "public"\ntopic_words = ["x"]', [("key-unused", "privacy.topic_words", 3)]),
        ('[privacy]\nmore_topic_words = ["x"]\ntopic = "public"', [("key-unused", "privacy.more_topic_words", 2)]),
        ("[complexity]\nhard_from = 0.9\n" + rule("all", "true"), [("key-unused", "complexity.hard_from", 2)]),
        ("", []),
    ],
)
def test_a_policy_shows_what_is_odd_about_it(text: str, expected: list[tuple[str, str, int]]) -> None:
    assert static(text) == expected


def test_every_code_is_listed() -> None:
    source = (Path(__file__).parents[3] / "router" / "policy" / "lint.py").read_text()
    assert set(re.findall(r'Warned\(\s*"([a-z-]+)"', source)) == set(CODES)


def test_a_detector_that_does_not_load_is_told_since_it_keeps_every_prompt() -> None:
    found = lint_policy(Policy.parse(text := '[privacy]\ndetectors = ["no-such-detector"]'), text)
    assert [(one.code, one.key, one.line) for one in found] == [("detector-fails", "privacy.detectors", 2)]
    assert "no-such-detector is missing" in found[0].message


def test_a_gate_that_is_there_is_no_warning(tmp_path: Path) -> None:
    (tmp_path / "gate.json").write_text("{}")
    text = '[confidence]\nerror_rate = 0.1\ngate = "gate.json"'
    assert lint_policy(Policy.parse(text, folder=tmp_path), text) == []
    assert [one.code for one in lint_policy(Policy.parse(text, folder=tmp_path / "elsewhere"), text)] == ["file-missing"]


def test_presets_are_clean() -> None:
    for text in presets().values():
        assert static(text) == []


def test_over_prompts_shadows_overlaps_gaps_and_rules_that_never_decide_show() -> None:
    text = (
        rule("long", "tokens > 16", "cloud") + rule("longer", "tokens > 20") + rule("never", "tokens > 900") + rule("low", "battery < 0.2")
    )
    assert dynamic(text, SIMPLE, HARD) == [
        ("rule-shadowed", "rule.longer", 7),
        ("rule-unmatched", "rule.never", 11),
        ("rule-unknown", "rule.low", 15),
        ("rules-overlap", "rule.long", 3),
        ("rules-gap", "rule", 0),
    ]
    known = RouteContext(link=LinkState(reachable=True), device=DeviceState(battery=0.1))
    assert dynamic(rule("low", "battery < 0.2"), SIMPLE, HARD, context=known) == []


def test_an_overlap_that_priorities_settle_is_no_warning() -> None:
    text = rule("long", "tokens > 16", "cloud") + "priority = 1\n" + rule("short", "tokens < 900")
    assert dynamic(text, HARD) == [("rule-shadowed", "rule.short", 8)]
    assert ("rules-overlap", "rule.long", 3) in dynamic(text.replace("priority = 1", "priority = 0"), HARD)


def test_over_prompts_a_sound_set_of_rules_is_clean() -> None:
    assert dynamic(rule("night", "hour < 6 && tokens > 16", "cloud") + rule("rest", "true"), SIMPLE, UNCERTAIN) == []


def test_a_condition_that_cannot_be_computed_is_counted() -> None:
    text = rule("odd", "100 / (turns - 1) > 3") + rule("rest", "true")
    found = cover(Policy.parse(text), [RouteRequest.of(SIMPLE), RouteRequest.of(HARD)], AT_NIGHT)
    assert (found.prompts, found.errors["odd"], found.unknown["odd"], found.decided["rest"]) == (2, 2, 2, 2)
    assert dynamic(text, SIMPLE)[0] == ("rule-fails", "rule.odd", 3)
