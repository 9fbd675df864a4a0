"""The distribution of the draws, and what no draw depends on."""

import math

import numpy as np
import pytest
from hybrid.shared_protocol.errors import InvalidLogits
from hybrid.shared_protocol.sampling import SampleRow, SamplingParams, sample, sample_full, sample_rows
from hybrid.tests.support.sampling import FILTERS, kept, row


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
