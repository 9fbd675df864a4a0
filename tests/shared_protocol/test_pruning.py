"""The quick paths against their definitions."""

import numpy as np
import pytest
from hybrid.shared_protocol import filters, sampling
from hybrid.shared_protocol.errors import InvalidLogits
from hybrid.shared_protocol.sampling import SamplingParams, sample, sample_full
from hybrid.tests.support.sampling import FILTERS, some_params, values
from hypothesis import given, settings
from hypothesis import strategies as st


def adversarial_rows(size: int) -> dict[str, np.ndarray]:
    """Rows on which bounds, ties and float32 are at their worst."""
    random = np.random.default_rng(5)
    normal = (random.normal(size=size) * 3).astype(np.float32)
    half_masked = normal.copy()
    half_masked[::2] = -np.inf
    few_left = np.full(size, -np.inf, np.float32)
    few_left[[3, size // 2, size - 1]] = 1.5
    rows = {
        "like a model's": normal,
        "peaked": (normal * 8).astype(np.float32),
        "all equal": np.full(size, 2.5, np.float32),
        "all equal and huge": np.full(size, 3e38, np.float32),
        "all equal and far below zero": np.full(size, -3e38, np.float32),
        "few distinct values": np.round(normal).astype(np.float32),
        "huge spread": (normal * 1e37).astype(np.float32),
        "spread of a million": (normal * 1e6).astype(np.float32),
        "tiny spread": (normal * 1e-6).astype(np.float32),
        "differences below float32 after scaling": (5e5 + normal / 8).astype(np.float32),
        "half masked": half_masked,
        "three left": few_left,
        "rising": np.linspace(-9, 9, size, dtype=np.float32),
        "best ones last, in one group": np.where(np.arange(size) % (size // 16) == 0, 9, -9).astype(np.float32),
        "zeros of both signs": np.where(np.arange(size) % 2 == 0, np.float32(0.0), np.float32(-0.0)),
    }
    return rows


@pytest.mark.parametrize("size", [9000, 49152])
@pytest.mark.parametrize("name", adversarial_rows(32))
def test_pruning_changes_no_draw_on(name: str, size: int) -> None:
    logits = adversarial_rows(size)[name]
    for params in FILTERS:
        if not params.greedy and params != FILTERS[0]:
            quick = filters.survivors(logits, params)
            plain = filters.survivors_plain(logits, params)
            assert np.array_equal(plain if quick is None else quick, plain), params
        for position in range(3):
            assert sample(logits, params, 7, position) == sample_full(logits, params, 7, position), params


@given(
    values=st.lists(values, min_size=1, max_size=40), repeat=st.integers(1, 200), params=some_params, seed=st.integers(-(2**63), 2**63 - 1)
)
def test_pruning_changes_no_draw(values: list[float], repeat: int, params: SamplingParams, seed: int) -> None:
    logits = np.tile(np.array(values, dtype=np.float32), repeat)
    if not np.isfinite(logits).any():
        with pytest.raises(InvalidLogits):
            sample(logits, params, seed, 0)
        return
    assert sample(logits, params, seed, 3) == sample_full(logits, params, seed, 3)


@settings(max_examples=60)
@given(data=st.data(), params=some_params)
def test_the_quick_filters_keep_what_the_plain_ones_keep(data: st.DataObject, params: SamplingParams) -> None:
    size = data.draw(st.integers(1, 6000))
    scale = data.draw(st.sampled_from([1e-3, 0.5, 3.0, 40.0, 1e30]))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    logits = (random.normal(size=size) * scale).astype(np.float32)
    if data.draw(st.booleans()):
        logits = np.round(logits / np.float32(scale)) * np.float32(scale)  # ties
    plain = filters.survivors_plain(logits, params) if not params.greedy else None
    quick = filters.survivors(logits, params) if not params.greedy else None
    if quick is not None:
        assert np.array_equal(quick, plain)


def test_the_noise_of_many_is_pruned_to_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(sampling, "_draw", lambda logits, ids, temperature, key: asked.append(ids.size) or int(ids[0]))
    for position in range(50):
        sample(adversarial_rows(49152)["like a model's"], SamplingParams(), 7, position)
        sample(adversarial_rows(49152)["all equal"], SamplingParams(), 7, position)
    model, equal = asked[0::2], asked[1::2]
    assert np.mean(model) < 16  # 1 + an exponential variate with mean 1 in theory, times the loss of bounding by the leaders
    assert np.mean(equal) < 49152 / 64 * 2
