"""A decision by a learned router: its score goes where the complexity went, and it knows when to be silent."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hybrid.router.decide import decide
from hybrid.router.learned import store
from hybrid.router.learned.train import train
from hybrid.router.policy.policy import Policy
from hybrid.router.request import RouteContext, RouteRequest
from hybrid.shared_protocol.errors import ConfigError
from hybrid.shared_protocol.runtime import LinkState
from hybrid.tests.router.learned.outcomes import made_up, trained_router
from hybrid.tests.support.network_spy import network_spy

SUM = "A merchant at the mill owns 40 ropes and buys 120 more in each of 3 weeks. Then he sells 20% of them for 2.50 coins. How many coins?"
EASY = "where can i see ropes near the mill tower"
STRANGE = "```\nclass Tree:\n    def grow(self):\n        return []\n```\n" * 9
SETTINGS = "[complexity]\ncascade_from = 0.5\nhard_from = 0.5\n[learned]\nmodel = 'ours.hybrid'\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learned")
    store.save(trained_router(), folder / "ours.hybrid")
    (folder / "policy.toml").write_text(SETTINGS)
    return folder


@pytest.fixture(scope="module")
def context(folder: Path) -> RouteContext:
    return RouteContext(policy=Policy.load(folder / "policy.toml"), link=LinkState(reachable=True))


def test_the_score_of_a_learned_router_decides(context: RouteContext) -> None:
    hard, easy = (decide(RouteRequest.of(text), context) for text in (SUM, EASY))
    assert (hard.route, hard.reason, hard.rule) == ("cloud", "hard", "complexity.hard_from")
    assert (easy.route, easy.reason) == ("edge", "simple")
    assert 0 <= easy.scores.complexity < 0.5 <= hard.scores.complexity <= 1
    assert "from the device" in hard.why and "merchant" not in hard.why
    router = context.policy.learned_router
    assert router is not None and hard.provenance.learned_id == router.id and hard.provenance.learned_data == router.about.data
    assert b"merchant" not in hard.to_json() and router.id.encode() in hard.to_json()


def test_a_hard_task_stays_hard_when_the_user_says_continue(context: RouteContext) -> None:
    """Row G63: not only the last message is scored."""
    turns = [{"role": "user", "content": SUM}]
    alone = decide(RouteRequest.of(turns), context).scores.complexity
    for _ in range(20):
        turns += [{"role": "assistant", "content": "First, ..."}, {"role": "user", "content": "continue"}]
        found = decide(RouteRequest.of(turns), context)
        assert found.route == "cloud" and found.scores.complexity >= alone


def test_deciding_by_one_reaches_for_no_network(folder: Path) -> None:
    """No text leaves for somebody's embedding: words are hashed here."""
    with network_spy() as seen:
        context = RouteContext(policy=Policy.load(folder / "policy.toml"), link=LinkState(reachable=True))
        decided = [decide(RouteRequest.of(text), context) for text in (SUM, EASY, STRANGE)]
    assert [one.route for one in decided[:2]] == ["cloud", "edge"] and seen == []


def test_where_it_abstains_the_rules_decide_as_without_it(context: RouteContext) -> None:
    bands = "[complexity]\ncascade_from = 0.5\nhard_from = 0.5\n"
    without = decide(RouteRequest.of(STRANGE), replace(context, policy=Policy.parse(bands)))
    found = decide(RouteRequest.of(STRANGE), context)
    assert found.opinion is not None and found.opinion.score is None and "seen too little of the kind" in found.why
    assert (found.route, found.rule, found.scores) == (without.route, without.rule, without.scores)
    assert without.opinion is None and without.provenance.learned_id == ""


def test_an_uncertain_gain_abstains_where_the_policy_says_so(folder: Path, context: RouteContext) -> None:
    timid = Policy.parse(SETTINGS + "abstain_errors = 10", folder=folder)
    found = decide(RouteRequest.of(SUM), replace(context, policy=timid))
    assert found.opinion is not None and found.opinion.score is None and "too uncertain" in found.why


def test_it_is_silent_for_other_models_than_those_it_was_trained_for(context: RouteContext) -> None:
    same = decide(RouteRequest.of(SUM), replace(context, edge_model="small", cloud_model="large"))
    other = decide(RouteRequest.of(SUM), replace(context, edge_model="small", cloud_model="huge"))
    assert same.opinion is not None and same.opinion.score is not None
    assert other.opinion is not None and other.opinion.score is None and "trained for large" in other.why and "huge" in other.why


def test_a_private_prompt_is_judged_by_the_rules_alone(context: RouteContext) -> None:
    found = decide(RouteRequest.of(f"{SUM} Write to anna.muster@example.org"), context)
    assert found.route == "edge" and found.reason == "private" and found.opinion is None


@pytest.mark.parametrize("text", ["", "\x00", "?" * 9000, "多" * 3000, "a " * 50_000])
def test_no_text_makes_it_trip(context: RouteContext, text: str) -> None:
    assert 0 <= decide(RouteRequest.of(text), context).scores.complexity <= 1
    assert decide(RouteRequest.of([{"role": "system", "content": text}]), context).route


def test_the_policys_hash_follows_what_is_in_the_file_and_not_where_it_lies(folder: Path, tmp_path: Path) -> None:
    here = Policy.load(folder / "policy.toml")
    store.save(trained_router(), tmp_path / "other.hybrid")
    assert Policy.parse(SETTINGS.replace("ours", "other"), folder=tmp_path).hash == here.hash
    store.save(train(made_up(seed=3)), tmp_path / "third.hybrid")
    assert Policy.parse(SETTINGS.replace("ours", "third"), folder=tmp_path).hash != here.hash != Policy.default().hash


def test_a_file_that_is_missing_or_damaged_is_a_wrong_policy(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"learned\.model"):
        Policy.parse(SETTINGS, folder=tmp_path)
    (tmp_path / "ours.hybrid").write_bytes((folder / "ours.hybrid").read_bytes()[:-1] + b"?")
    with pytest.raises(ConfigError, match="damaged"):
        Policy.parse(SETTINGS, folder=tmp_path)


def test_a_policy_without_one_never_loads_this_package() -> None:
    code = (
        "import sys; from hybrid.router.decide import decide; from hybrid.router.request import RouteContext, RouteRequest;"
        "decide(RouteRequest.of('Hi'), RouteContext()); sys.exit(any('learned' in name for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
