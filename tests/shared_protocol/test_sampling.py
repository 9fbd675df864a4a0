"""Filters and draws: the quick paths against their definitions, and the definitions against exact arithmetic and statistics."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hybrid.shared_protocol import filters, noise, sampling
from hybrid.shared_protocol.errors import InvalidLogits, InvalidRequest
from hybrid.shared_protocol.sampling import SampleRow, SamplingParams, sample, sample_full, sample_rows, top_logprobs
from hypothesis import given, settings
from hypothesis import strategies as st


def row(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


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


FILTERS = [
    SamplingParams(),
    SamplingParams(temperature=0.05),
    SamplingParams(temperature=2.0),
    SamplingParams(temperature=0.0),
    SamplingParams(top_p=0.9),
    SamplingParams(top_p=0.9999, temperature=1.5),
    SamplingParams(top_p=1e-9),
    SamplingParams(top_k=1),
    SamplingParams(top_k=40, top_p=0.95, min_p=0.01),
    SamplingParams(top_k=5000),
    SamplingParams(min_p=1.0),
    SamplingParams(min_p=1e-7, top_p=0.8),
    SamplingParams(min_p=1e-310),
]


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


values = st.one_of(
    st.floats(-30, 30, width=32), st.sampled_from([0.0, 1.0, 2.0, -math.inf]), st.floats(allow_nan=False, allow_infinity=False, width=32)
)
some_params = st.builds(
    SamplingParams,
    temperature=st.one_of(st.floats(1e-5, 2.0), st.sampled_from([0.0, 0.8, 1.0])),
    top_p=st.one_of(st.floats(1e-6, 1.0), st.just(1.0)),
    top_k=st.integers(0, 12),
    min_p=st.one_of(st.just(0.0), st.floats(0, 1)),
)


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


def scalar_sample(logits: list[float], params: SamplingParams, seed: int, position: int) -> int:
    """The contract once more, in plain Python: dictionaries, sorted lists, one addition after the other."""
    if params.temperature < 1e-5:
        return min(range(len(logits)), key=lambda i: (-logits[i], i))
    scaled = {i: x / params.temperature for i, x in enumerate(logits) if x != -math.inf}
    weight = {i: float(noise.exp(np.array([x - max(scaled.values())]))[0]) for i, x in scaled.items()}
    left = [i for i in scaled if weight[i] >= params.min_p]
    ranked = sorted(left, key=lambda i: (-logits[i], i))
    if params.top_k:
        ranked = ranked[: params.top_k]
    if params.top_p < 1:
        total = 0.0
        for i in sorted(ranked):
            total += weight[i]
        mass, prefix = 0.0, []
        for i in ranked:
            prefix.append(i)
            mass += weight[i] / total
            if mass >= params.top_p:
                break
        ranked = prefix
    key = noise.keys(seed, position)
    return min(ranked, key=lambda i: (-(scaled[i] + noise.gumbel_one(key, i)), i))


@given(values=st.lists(values, min_size=1, max_size=60), params=some_params, seed=st.integers(-(2**63), 2**63 - 1))
def test_the_definition_is_the_contract_in_plain_python(values: list[float], params: SamplingParams, seed: int) -> None:
    logits = np.array(values, dtype=np.float32)
    if np.isfinite(logits).any():
        assert sample_full(logits, params, seed, 9) == scalar_sample(logits.astype(np.float64).tolist(), params, seed, 9)


# --- what the filters mean ----------------------------------------------------------------------------------------------------------


def kept(logits: np.ndarray, **params: float) -> list[int]:
    ids = filters.survivors(logits, SamplingParams(**params))
    return np.flatnonzero(logits > -np.inf).tolist() if ids is None else ids.tolist()


def test_top_k_settles_ties_by_the_lowest_id() -> None:
    assert kept(row(1, 3, 2, 3, 2, 2), top_k=3) == [1, 2, 3]


def test_top_k_never_keeps_a_masked_token() -> None:
    assert kept(row(1, -math.inf, 2, -math.inf), top_k=4) == [0, 2]


def test_top_p_keeps_the_smallest_prefix_that_reaches_p() -> None:
    logits = np.log(np.array([0.5, 0.25, 0.125, 0.125])).astype(np.float32)
    assert kept(logits, top_p=0.49) == [0]
    assert kept(logits, top_p=0.7) == [0, 1]
    assert kept(logits, top_p=0.8) == [0, 1, 2]  # the tie of 2 and 3 goes to the lower id
    assert kept(logits, top_p=0.9) == [0, 1, 2, 3]


def test_top_p_counts_only_what_top_k_left() -> None:
    logits = np.log(np.array([0.4, 0.3, 0.2, 0.1])).astype(np.float32)
    assert kept(logits, top_k=2, top_p=0.5) == [0]  # 0.4 / 0.7 = 0.57
    assert kept(logits, top_p=0.5) == [0, 1]


def test_min_p_is_relative_to_the_most_likely_token() -> None:
    logits = np.log(np.array([0.5, 0.26, 0.14, 0.1])).astype(np.float32)
    assert kept(logits, min_p=0.5) == [0, 1]
    assert kept(logits, min_p=0.25) == [0, 1, 2]
    assert kept(logits, min_p=0.5, temperature=0.5) == [0]  # 0.52^2 < 0.5


def test_temperature_is_applied_before_the_filters() -> None:
    logits = np.log(np.array([0.6, 0.4])).astype(np.float32)
    assert kept(logits, top_p=0.65, temperature=1.0) == [0, 1]
    assert kept(logits, top_p=0.65, temperature=0.5) == [0]  # 0.36 / 0.52 = 0.69


@given(weights=st.lists(st.integers(1, 1000), min_size=1, max_size=12), p=st.integers(1, 99))
def test_top_p_agrees_with_exact_fractions(weights: list[int], p: int) -> None:
    logits = np.log(np.array(weights, dtype=np.float64)).astype(np.float32)
    order = sorted(range(len(weights)), key=lambda i: (-weights[i], i))
    mass, total, expected = Fraction(0), sum(weights), []
    for i in order:
        expected.append(i)
        mass += Fraction(weights[i], total)
        if abs(mass - Fraction(p, 100)) < Fraction(1, 10**5):
            return  # float32 logits cannot tell
        if mass >= Fraction(p, 100):
            break
    assert kept(logits, top_p=p / 100) == sorted(expected)


# --- draws --------------------------------------------------------------------------------------------------------------------------


def test_greedy_takes_the_lowest_id_of_the_best_and_no_noise() -> None:
    logits = row(0, 5, 5, 1)
    assert {sample(logits, SamplingParams(temperature=0.0), seed, 0) for seed in range(20)} == {1}
    assert sample(logits, SamplingParams(temperature=9e-6), 1, 1) == 1


@pytest.mark.parametrize(
    "params", [SamplingParams(temperature=0.7), SamplingParams(top_k=5), SamplingParams(top_p=0.8), SamplingParams(min_p=0.2)]
)
def test_the_draws_have_the_distribution_of_the_filtered_softmax(params: SamplingParams) -> None:
    logits = row(2.0, 1.0, 0.5, 0.0, -0.5, -1.0, -2.0, -math.inf)
    wide = np.exp(logits.astype(np.float64) / params.temperature)
    survivors = np.zeros(8, bool)
    survivors[kept(logits, **{name: getattr(params, name) for name in ("temperature", "top_k", "top_p", "min_p")})] = True
    probabilities = np.where(survivors, wide, 0) / wide[survivors].sum()
    draws = 12_000
    counts = np.bincount([sample(logits, params, 1234, position) for position in range(draws)], minlength=8)
    assert not counts[~survivors].any()
    expected = draws * probabilities[survivors]
    statistic = float(((counts[survivors] - expected) ** 2 / expected).sum())
    degrees = int(survivors.sum()) - 1
    assert abs(statistic - degrees) < 4 * math.sqrt(2 * degrees)


def test_draws_over_a_whole_vocabulary_have_the_distribution_of_the_softmax() -> None:
    logits = np.concatenate([np.zeros(4096, np.float32), np.full(4096, math.log(3.0), np.float32)])
    upper = sum(sample(logits, SamplingParams(), 99, position) >= 4096 for position in range(4000))
    assert abs(upper / 4000 - 0.75) < 4 * math.sqrt(0.75 * 0.25 / 4000)


def test_a_row_is_drawn_the_same_alone_and_among_others_and_without_its_padding() -> None:
    random = np.random.default_rng(2)
    logits = (random.normal(size=(4, 9000)) * 3).astype(np.float32)
    logits[:, 8990:] = 100.0  # padding above the vocabulary must never be drawn
    rows = [SampleRow(params, seed=i, position=5 + i, vocab_size=8990) for i, params in enumerate(FILTERS[:4])]
    together = sample_rows(logits, rows)
    assert together == [sample_rows(logits[i : i + 1], [rows[i]])[0] for i in range(4)]
    assert together == [sample(logits[i, :8990], rows[i].params, i, 5 + i) for i in range(4)]


@pytest.mark.parametrize("params", [SamplingParams(temperature=0.0), SamplingParams(), SamplingParams(top_k=3)])
@pytest.mark.parametrize("bad", [row(1, math.nan, 2), row(1, math.inf), row(-math.inf, -math.inf), row()])
def test_logits_that_hold_no_distribution_are_a_typed_error(bad: np.ndarray, params: SamplingParams) -> None:
    with pytest.raises(InvalidLogits):
        sample(bad, params, 0, 0)
    with pytest.raises(InvalidLogits):
        sample_full(bad, params, 0, 0)


# --- reported log-probabilities -----------------------------------------------------------------------------------------------------


def test_reported_log_probabilities_are_of_the_raw_distribution() -> None:
    logits = np.log(np.array([0.5, 0.25, 0.125, 0.125])).astype(np.float32)
    logprob, top = top_logprobs(logits, 3, 3)
    assert logprob == pytest.approx(math.log(0.125), abs=1e-6)
    assert [i for i, _ in top] == [0, 1, 2]
    assert [p for _, p in top] == pytest.approx([math.log(0.5), math.log(0.25), math.log(0.125)], abs=1e-6)


def test_masked_tokens_are_not_among_the_most_likely() -> None:
    logprob, top = top_logprobs(row(0, -math.inf, 0), 0, 20)
    assert [i for i, _ in top] == [0, 2] and logprob == pytest.approx(-math.log(2))
    assert top_logprobs(row(0, -math.inf, 0), 0, 0)[1] == ()


@pytest.mark.parametrize(
    "field, value",
    [
        ("temperature", math.nan),
        ("temperature", 2.1),
        ("top_p", 0.0),
        ("top_k", -1),
        ("min_p", 1.5),
        ("seed", 2**63),
        ("max_tokens", 0),
        ("n", 0),
    ],
)
def test_a_parameter_out_of_range_is_named(field: str, value: float) -> None:
    with pytest.raises(InvalidRequest) as caught:
        SamplingParams(**{field: value})
    assert caught.value.param == field
