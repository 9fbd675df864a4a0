"""Corrections stay within their limits, and every version can be gone back to."""

import hashlib

import msgspec
import pytest
from hybrid.router.learned import feedback, store
from hybrid.router.learned.feedback import History, Limits, Observed, correct, corrected, roll_back
from hybrid.router.learned.model import Model, predict, raw_scores
from hybrid.router.learned.train import train
from hybrid.shared_protocol.errors import ConfigError, InvalidRequest
from hybrid.tests.router.learned.outcomes import made_up, trained_router
from hypothesis import given, settings
from hypothesis import strategies as st

TEXT = "where can i see ropes near the quarry"


@pytest.fixture(scope="module")
def base() -> Model:
    return store.from_bytes(store.to_bytes(trained_router(80)))


def edge_of(model: Model, text: str = TEXT) -> float:
    return float(raw_scores(model, [text])[0][0, 0])


def test_a_failure_lowers_what_is_expected_of_the_device_there_and_less_elsewhere(base: Model) -> None:
    history = correct(History(base), [Observed(TEXT, "edge", 0.0)] * 3, when="2024-05-02")
    after = corrected(history)
    here = edge_of(base) - edge_of(after)
    elsewhere = edge_of(base, made_up()[1].prompt) - edge_of(after, made_up()[1].prompt)
    assert here > 0.05 and here > 1.2 * elsewhere
    assert predict(after, TEXT).p_edge < predict(base, TEXT).p_edge
    assert predict(after, TEXT).p_cloud == predict(base, TEXT).p_cloud
    assert after.id == f"{base.id}+1" and history.versions[0].what == "3 observations"


def test_one_observation_moves_its_prompt_by_the_step_and_no_more(base: Model) -> None:
    limits = Limits(rate=1.0, step=0.03, drift=0.5)
    after = corrected(correct(History(base, limits), [Observed(TEXT, "edge", 0.0)], when="2024-05-02"))
    assert edge_of(base) - edge_of(after) == pytest.approx(0.03, abs=1e-6)
    almost = Limits(rate=0.1, step=0.5, drift=0.5)  # a tenth of the error
    after = corrected(correct(History(base, almost), [Observed(TEXT, "edge", 0.0)], when="2024-05-02"))
    assert edge_of(after) == pytest.approx(0.9 * edge_of(base), abs=1e-6)


@settings(max_examples=15, deadline=None)
@given(
    observed=st.lists(
        st.tuples(st.text(max_size=60), st.sampled_from(["edge", "cloud"]), st.sampled_from([0.0, 1.0])), min_size=1, max_size=20
    ),
    other=st.text(max_size=60),
)
def test_no_feedback_moves_any_prompt_further_than_the_drift(base: Model, observed: list[tuple[str, str, float]], other: str) -> None:
    history = History(base, Limits(rate=1.0, step=1.0, drift=0.1))
    for _ in range(4):
        history = correct(history, [Observed(text, side, score) for text, side, score in observed], when="2024-05-02")  # type: ignore[arg-type]
    before, after = raw_scores(base, [other])[0], raw_scores(corrected(history), [other])[0]
    assert abs(after - before).max() <= 0.1 + 1e-4
    assert max(version.drift for version in history.versions) <= 0.1 + 1e-9


def test_any_version_can_be_gone_back_to(base: Model) -> None:
    history = History(base)
    reached = [edge_of(base)]
    for day in range(1, 5):
        history = correct(history, [Observed(TEXT, "edge", 0.0)], when=f"2024-05-0{day}")
        reached.append(edge_of(corrected(history)))
    assert reached == sorted(reached, reverse=True) and len(set(reached)) == 5
    for number, value in enumerate(reached):
        back = roll_back(history, number, when="2024-06-01")
        assert edge_of(corrected(back)) == value
        assert back.versions[:4] == history.versions and back.versions[4].what == f"back to version {number}"
    with pytest.raises(InvalidRequest, match="no version 9"):
        roll_back(history, 9, when="2024-06-01")


def test_a_history_is_kept_without_any_word_and_read_for_its_own_router_only(base: Model) -> None:
    history = correct(History(base), [Observed("zanzibar quokka", "cloud", 1.0)], when="2024-05-02")
    data = feedback.to_bytes(history)
    assert b"quokka" not in data and "quokka" not in repr(history.versions) and "quokka" not in repr(Observed("quokka", "edge", 1.0))
    assert feedback.from_bytes(data, base).versions == history.versions
    other = store.from_bytes(store.to_bytes(train(made_up(80, seed=9))))
    with pytest.raises(ConfigError, match="corrections of the learned router"):
        feedback.from_bytes(data, other)
    for broken in (b"", data[:-1], data[:50] + b"x" + data[51:]):
        with pytest.raises(ConfigError, match="damaged"):
            feedback.from_bytes(broken, base)
    far = msgspec.msgpack.encode((base.id, Limits(), [msgspec.structs.replace(history.versions[0], total=b"\x7f" * 4112)]))
    with pytest.raises(ConfigError, match="out of its limits"):
        feedback.from_bytes(feedback.MAGIC + hashlib.sha256(far).digest() + far, base)


@pytest.mark.parametrize("observed", [[], [Observed("a", "edge", 1.5)], [Observed("a", "edge", float("nan"))]])
def test_what_is_no_observation_is_refused(base: Model, observed: list[Observed]) -> None:
    with pytest.raises(InvalidRequest):
        correct(History(base), observed, when="2024-05-02")


def test_limits_that_limit_nothing_are_refused() -> None:
    for wrong in ({"rate": 0.0}, {"step": 2.0}, {"drift": float("nan")}):
        with pytest.raises(ValueError, match="limits"):
            Limits(**wrong)
