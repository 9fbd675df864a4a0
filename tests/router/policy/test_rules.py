"""Which rule decides, what it may decide, and which rules are refused before they decide anything."""

import dataclasses
import json
from pathlib import Path

import msgspec
import pytest
from hybrid.router.costs import CostModel
from hybrid.router.plan import SpeculationFacts
from hybrid.router.policy.expression import FUNCTIONS
from hybrid.router.policy.policy import Policy, presets
from hybrid.router.policy.rule import Rule
from hybrid.router.policy.variables import VARIABLES
from hybrid.router.quota import QuotaView
from hybrid.router.request import Moment, RouteRequest
from hybrid.shared_protocol.errors import ConfigError
from hybrid.shared_protocol.runtime import DeviceState, LinkState
from hybrid.tests.support.deciding import DRAFTED, HARD, NO_DEVICE, OFFLINE, PRIVATE, SIMPLE, UNCERTAIN, run, way
from hypothesis import given
from hypothesis import strategies as st


def rule(name: str, when: str, route: str, **keys: object) -> str:
    lines = {"name": name, "when": when, "route": route, **keys}
    return "[[rule]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in lines.items())


def policy(*rules: str, head: str = "") -> Policy:
    return Policy.parse(head + "".join(rules), "ours.toml")


def refused(*rules: str, head: str = "") -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        policy(*rules, head=head)
    assert caught.value.exit_code == 5
    return caught.value


def test_a_rule_that_is_true_decides_before_complexity_does() -> None:
    to_cloud, to_edge = policy(rule("up", "tokens < 100", "cloud")), policy(rule("down", "tokens > 1", "edge"))
    assert way(SIMPLE, policy=to_cloud) == ("cloud", "hard", "rule.up")
    assert way(HARD, policy=to_edge) == ("edge", "simple", "rule.down")
    assert way(SIMPLE, policy=policy(rule("both", "true", "cascade"))) == ("cascade", "low_confidence", "rule.both")
    assert way(SIMPLE, policy=policy(rule("draft", "true", "speculative"))) == ("speculative", "drafted", "rule.draft")
    assert way(SIMPLE, policy=policy(rule("no", "true", "refuse"))) == ("refuse", "blocked", "rule.no")
    assert way(SIMPLE, policy=policy(rule("long", "tokens > 5000", "cloud")))[2] == "complexity.cascade_from"


def test_a_decision_says_why_and_whose_rule_it_was() -> None:
    decision = run(SIMPLE, policy=policy(rule("small", "tokens < 100", "cloud", reason="small prompts go up"), head='version = "7 May"\n'))
    assert decision.why == "rule.small: small prompts go up"
    assert run(SIMPLE, policy=policy(rule("small", "tokens < 100", "cloud"))).why == "rule.small: tokens < 100"
    assert decision.provenance.policy_version == "7 May"
    assert [traced.rule.name for traced in decision.rules] == ["small"]


def test_a_condition_of_many_lines_is_told_on_one_short_line() -> None:
    long = "tokens > 0\n  && " + " && ".join(f"tokens != {number + 10**6}" for number in range(30))
    why = run(SIMPLE, policy=policy(rule("long", long, "cloud"))).why
    assert why.startswith("rule.long: tokens > 0 && tokens != 1000000 && ") and "\n" not in why and len(why) < 150


def test_higher_priority_comes_first_and_equal_ones_as_they_stand() -> None:
    first, second = rule("first", "tokens > 0", "edge"), rule("second", "tokens > 1", "cloud")
    assert way(SIMPLE, policy=policy(first, second))[2] == "rule.first"
    assert way(SIMPLE, policy=policy(second, first))[2] == "rule.second"
    assert way(SIMPLE, policy=policy(first, rule("second", "tokens > 1", "cloud", priority=1)))[2] == "rule.second"
    assert way(SIMPLE, policy=policy(rule("first", "tokens > 0", "edge", priority=-1), second))[2] == "rule.second"


def test_a_name_that_is_no_text_is_not_known_and_nobody_complains(caplog: pytest.LogCaptureFixture) -> None:
    names = policy(rule("vip", "user == 'ann' || tenant == 'acme'", "cloud", unknown="match"))
    (traced,) = run(dataclasses.replace(RouteRequest.of(SIMPLE), user="\ud800", tenant="acm\udfff"), policy=names).rules
    assert (traced.effect, traced.outcome.missing, traced.outcome.error) == ("match", ("user", "tenant"), "")
    assert caplog.text == ""


def test_unknown_skips_matches_or_refuses_as_the_rule_says() -> None:
    low = "battery < 0.2"
    assert way(SIMPLE, policy=policy(rule("low", low, "cloud")))[2] == "complexity.cascade_from"
    assert way(SIMPLE, policy=policy(rule("low", low, "cloud", unknown="match"))) == ("cloud", "hard", "rule.low")
    assert way(SIMPLE, policy=policy(rule("low", low, "cloud", unknown="refuse"))) == ("refuse", "blocked", "rule.low")
    assert "battery not known" in run(SIMPLE, policy=policy(rule("low", low, "cloud", unknown="refuse"))).why
    for reading in ("skip", "match", "refuse"):
        known = policy(rule("low", low, "cloud", unknown=reading))
        assert way(SIMPLE, policy=known, device=DeviceState(battery=0.1))[2] == "rule.low"
        assert way(SIMPLE, policy=known, device=DeviceState(battery=0.9))[2] == "complexity.cascade_from"


@pytest.mark.parametrize("route", ["edge", "cloud", "cascade", "speculative"])
def test_a_rule_sends_nothing_private_to_the_cloud_and_nothing_to_an_absent_side(route: str) -> None:
    ours = policy(rule("ours", "true", route))
    assert way(PRIVATE, policy=ours) == ("edge", "private", "privacy.local_only")
    assert way(PRIVATE, policy=ours, device=NO_DEVICE)[0] == "refuse"
    assert way(SIMPLE, policy=ours, link=OFFLINE)[0] == "edge"
    assert way(SIMPLE, policy=ours, device=NO_DEVICE)[0] == "cloud"
    assert way(SIMPLE, policy=ours, device=NO_DEVICE, link=OFFLINE)[0] == "refuse"


def test_the_stage_that_took_the_ruled_way_names_the_reason() -> None:
    up = policy(rule("up", "true", "cloud"))
    assert way(SIMPLE, policy=up, link=OFFLINE) == ("edge", "cloud_unreachable", "capability.cloud")
    assert way(SIMPLE, policy=up, quota=QuotaView(available=1, capacity=9))[:2] == ("edge", "quota_degraded")
    assert way(SIMPLE, policy=up, device=NO_DEVICE) == ("cloud", "hard", "rule.up")  # nothing was taken
    down = policy(rule("down", "true", "edge"))
    assert way(HARD, policy=down, link=OFFLINE) == ("edge", "simple", "rule.down")
    assert way(HARD, policy=down, device=NO_DEVICE) == ("cloud", "edge_unavailable", "capability.edge")


def test_without_fallback_a_rule_whose_way_is_taken_refuses_with_that_reason() -> None:
    up = policy(rule("up", "true", "cloud", fallback=False))
    assert way(SIMPLE, policy=up) == ("cloud", "hard", "rule.up")
    assert way(SIMPLE, policy=up, link=OFFLINE) == ("refuse", "cloud_unreachable", "rule.up")
    assert way(SIMPLE, policy=up, quota=QuotaView(available=1, capacity=9)) == ("refuse", "over_quota", "rule.up")
    assert way(PRIVATE, policy=up) == ("refuse", "private", "rule.up")
    down = policy(rule("down", "true", "edge", fallback=False))
    assert way(HARD, policy=down, device=NO_DEVICE) == ("refuse", "edge_unavailable", "rule.down")
    draft = policy(rule("draft", "true", "speculative", fallback=False))
    assert way(DRAFTED, policy=draft, speculation=None) == ("refuse", "blocked", "rule.draft")
    assert way(DRAFTED, policy=draft) == ("speculative", "drafted", "rule.draft")


def test_a_rule_refuses_a_private_request_too_but_never_lets_it_out() -> None:
    assert way(PRIVATE, policy=policy(rule("no", "tokens > 1", "refuse"))) == ("refuse", "blocked", "rule.no")
    assert way(PRIVATE, policy=policy(rule("no", "battery < 1.0", "cloud", unknown="refuse"))) == ("refuse", "blocked", "rule.no")


def test_nothing_of_the_cloud_shows_in_what_becomes_of_a_private_request() -> None:
    """Or the route of a private request would tell whether there is a network: for it, facts of the cloud are not known."""
    clouds = {
        "reachable": "reachable",
        "rtt_ms": "rtt_ms < 1000.0",
        "price_in": "price_in > 0.0",
        "price_out": "price_out > 0.0",
        "cost": "cost > 0.0",
        "quota_left": "quota_left > 0.0",
    }
    assert set(clouds) == {name for name, variable in VARIABLES.items() if variable.cloud}
    facts = {"link": LinkState(True, rtt_s=0.01), "costs": CostModel(price_in=1e-6, price_out=1e-6), "quota": QuotaView(10_000, 10_000)}
    for name, when in clouds.items():
        ours = policy(rule("no", when, "refuse"))
        assert way(SIMPLE, policy=ours, **facts) == ("refuse", "blocked", "rule.no"), name
        assert way(PRIVATE, policy=ours, **facts) == ("edge", "private", "privacy.local_only"), name


def test_drafting_by_rule_drafts_even_where_it_does_not_pay_and_leaves_the_rest_to_the_cloud() -> None:
    slow = SpeculationFacts(rtt_s=0.5, draft_s=(0, 0.005, 0.01), verify_s=(0.03, 0.035, 0.04), acceptance=0.5)
    auto = policy(rule("draft", "true", "speculative"))
    assert way(DRAFTED, policy=Policy.default(), speculation=slow)[0] == "cloud"
    decision = run(SIMPLE, policy=auto, speculation=slow)
    assert decision.route == "speculative" and decision.plan is not None and decision.plan.draft_len >= 1
    assert way(SIMPLE, policy=auto, speculation=None) == ("cloud", "hard", "rule.draft")


@pytest.mark.parametrize(
    ("when", "facts", "request_"),
    [
        ("tokens > 5 && max_tokens == 9 && turns == 1 && tools == 1 && images == 0", {}, {"max_tokens": 9, "tools": [{"name": "x"}]}),
        ("user == 'ann' && tenant == 'acme'", {}, {"user": "ann", "tenant": "acme"}),
        ("task == 'question' && language == 'en' && !code && complexity < 0.3", {}, {}),
        ("hour == 3 && weekday == 7", {"moment": Moment(3, 7)}, {}),
        (
            "battery < 0.2 && thermal_headroom < 0.3 && memory_mb < 600.0 && load > 0.5 && edge_available",
            {"device": DeviceState(500_000_000, 0.1, 0.2, load=0.9)},
            {},
        ),
        ("context_left < 4096 && context_left > 3000", {"device": DeviceState(edge_context=4096)}, {}),
        ("reachable && rtt_ms > 19.9 && rtt_ms < 20.1", {"link": LinkState(True, rtt_s=0.02)}, {}),
        ("price_in == 2.0 && price_out == 4.0 && cost > 0.0", {"costs": CostModel(price_in=2e-6, price_out=4e-6)}, {}),
        ("quota_left == 700.0", {"quota": QuotaView(700, 1000)}, {}),
    ],
)
def test_every_variable_says_what_its_name_says(when: str, facts: dict, request_: dict) -> None:
    prompt = RouteRequest.of(SIMPLE, **request_)
    assert way(prompt, policy=policy(rule("all", when, "refuse")), **facts)[2] == "rule.all"


def test_what_is_not_given_is_not_known() -> None:
    bare = ("max_tokens", "tenant", "hour", "weekday", "battery", "thermal_headroom", "memory_mb", "load", "rtt_ms", "price_in", "cost")
    for name in (*bare, "price_out", "quota_left"):
        when = f"{name} == {json.dumps(VARIABLES[name].samples[0])}"
        assert run(SIMPLE, policy=policy(rule("it", when, "edge"))).rules[0].outcome.missing == (name,)


@pytest.mark.parametrize(
    ("rules", "line", "key", "words"),
    [
        ([rule("a", "code", "edge"), rule("a", "!code", "edge")], 6, "rule.a.name", "two rules"),
        ([rule("a", "code", "edge"), rule("b", "code", "cloud")], 7, "rule.b.when", "another route"),
        ([rule("a", "code  &&\tcode", "edge"), rule("b", "code && code", "cloud")], 7, "rule.b.when", "another route"),
        ([rule("a", "true", "edge"), rule("b", "code", "cloud")], 7, "rule.b.when", "never asked: rule.a"),
        ([rule("a", "code", "cloud"), rule("b", "1 < 2", "edge", priority=9)], 3, "rule.a.when", "never asked: rule.b"),
        ([rule("a", "tokenz > 1", "edge")], 3, "rule.a.when", "did you mean tokens?"),
        ([rule("a", "device.battery > 0.1", "edge")], 3, "rule.a.when", "did you mean battery?"),
        ([rule("a", "tokens", "edge")], 3, "rule.a.when", "not true or false"),
        ([rule("a", "tokens >", "edge")], 3, "rule.a.when", "no CEL"),
        ([rule("a", "language == 5", "edge")], 3, "rule.a.when", "compares language, a text, with a number"),
        ([rule("a", "task == 'coding'", "edge")], 3, "rule.a.when", "never is (it is one of code, maths"),
        ([rule("a", "tokens > 5 && task in ['write', 'draw']", "edge")], 3, "rule.a.when", "compares task with 'draw'"),
        ([rule("a", "x" * 1001, "edge")], 3, "rule.a.when", "1 to 1000 characters"),
        ([rule("a", "code", "nowhere")], 4, "rule.a.route", '"cascade", "cloud", "edge"'),
        ([rule("a", "code", "edge", unknown="perhaps")], 5, "rule.a.unknown", '"match", "refuse" or "skip"'),
        ([rule("a", "code", "edge", prio=1)], 5, "rule.a.prio", "did you mean priority?"),
        ([rule("two words", "code", "edge")], 2, "rule.two words.name", "must be"),
        (["[[rule]]\nname = 'a'\nwhen = 'code'\n"], 1, "rule.a.route", "missing"),
        (["[[rule]]\nwhen = 'code'\nroute = 'edge'\n"], 1, "rule.1.name", "missing"),
        (["[rule]\nname = 'a'\n"], 1, "rule", "[[rule]]"),
        ([rule("a", "user.matches('(a+)+')", "edge")], 3, "rule.a.when", "repeats a repetition"),
    ],
)
def test_a_rule_that_is_wrong_or_contradicts_another_is_refused_with_line_and_key(
    rules: list[str], line: int, key: str, words: str
) -> None:
    error = refused(*rules)
    assert error.param == key and words in str(error)
    assert str(error).startswith(f"ours.toml:{line}: ")


def test_a_rule_that_drafts_contradicts_a_policy_that_never_drafts() -> None:
    error = refused(rule("draft", "code", "speculative"), head='[speculation]\nmode = "off"\n')
    assert error.param == "rule.draft.route" and str(error).startswith("ours.toml:6: ")


def test_work_is_bounded() -> None:
    assert "up to 200" in str(refused(*(rule(f"r{n}", f"tokens == {n}", "edge") for n in range(201))))
    assert "10 uses of matches()" in str(refused(*(rule(f"r{n}", f"user.matches('^a{n}')", "edge") for n in range(11))))


def test_a_catch_all_may_come_last() -> None:
    ours = policy(rule("code", "code", "cloud"), rule("rest", "true", "edge"))
    assert way(HARD, policy=ours)[2] == "rule.rest"
    assert way("def f(x):\n    return g()\n", policy=ours)[2] == "rule.code"


def test_rules_made_by_hand_are_checked_too() -> None:
    with pytest.raises(ConfigError, match="no variable"):
        msgspec.structs.replace(Policy.default(), rules=(Rule(name="a", when="tokenz > 1", route="edge"),))


def test_the_hash_covers_rules_and_their_order_but_not_the_version() -> None:
    one, other = rule("a", "code", "edge"), rule("b", "!code", "cloud")
    assert policy(one, other).hash != policy(other, one).hash != policy(one).hash != Policy.default().hash
    assert policy(one, head='version = "1"\n').hash == policy(one, head='version = "2"\n').hash == policy(one).hash


def test_a_condition_that_cannot_be_computed_is_unknown() -> None:
    decision = run(UNCERTAIN, policy=policy(rule("odd", "100 / (turns - 1) > 3", "refuse")))
    assert decision.route == "cascade"
    assert (decision.rules[0].outcome.value, decision.rules[0].outcome.error) == (None, "ZeroDivisionError")


def test_nothing_divided_by_nothing_is_unknown_and_no_reason_to_refuse_the_rule() -> None:
    slow = policy(rule("slow", "rtt_ms / battery > 100.0", "refuse"))
    for rtt_s, battery, said in ((0.0, 0.0, None), (0.1, 0.5, True), (0.1, 1.0, False), (0.1, 0.0, True)):
        decision = run(UNCERTAIN, policy=slow, link=LinkState(reachable=True, rtt_s=rtt_s), device=DeviceState(battery=battery))
        assert decision.rules[0].outcome.value is said
    with pytest.raises(ConfigError, match="mixes types"):
        policy(rule("mixed", "rtt_ms / battery > 100", "refuse"), rule("other", "rtt_ms / tokens > 1.0", "refuse"))


def test_the_page_on_policies_explains_every_variable_function_key_and_preset() -> None:
    page = (Path(__file__).parents[3] / "docs" / "policy.md").read_text()
    kinds = {int: "whole number", float: "number", bool: "truth value", str: "text"}
    for name, variable in VARIABLES.items():
        assert f"| `{name}` | {kinds[variable.type]} | {variable.meaning} |" in page
    for word in (*FUNCTIONS, *(field.name for field in msgspec.structs.fields(Rule)), *presets()):
        assert f"`{word}`" in page, word


TOKENS = ("tokens", "user", "code", "battery", "hour", "nobody", "'a'", "''", "1", "2.5", "9223372036854775807", "true", "null", "in")
TOKENS += ("&&", "||", "!", "(", ")", "[", "]", "{", "}", "==", "<", ">=", "?", ":", "+", "-", "*", "/", "%", ".", ",", "size(", "matches(")
TOKENS += (".map(", ".startsWith(", "'(a+)+'", "\\", "//", "\n", "r'", '"', "\x00", "é", "𝒳", "has(", "int(")


@given(words=st.lists(st.sampled_from(TOKENS), min_size=1, max_size=14), reading=st.sampled_from(["skip", "match", "refuse"]))
def test_any_condition_is_taken_or_refused_and_what_is_taken_decides(words: list[str], reading: str) -> None:
    try:
        made = msgspec.structs.replace(Policy.default(), rules=(Rule(name="a", when=" ".join(words), route="cloud", unknown=reading),))
    except ConfigError as error:
        assert error.param == "rule.a.when" and len(str(error)) < 700
        return
    assert run(SIMPLE, policy=made).rules[0].outcome.value in (True, False, None)


@given(text=st.text(max_size=200) | st.text(alphabet="[]=\n\"'ruleqota.{}#0123ab ", max_size=80))
def test_any_text_is_a_policy_or_refused(text: str) -> None:
    try:
        policy_of_any_text = Policy.parse(text)
    except ConfigError:
        return
    run(SIMPLE, policy=policy_of_any_text)
