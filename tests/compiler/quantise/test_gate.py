"""The gate measures how far a quantised model strays, and refuses beyond a limit with both figures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hybrid.compiler.capture.capture import capture
from hybrid.compiler.capture.constants import constants_of
from hybrid.compiler.quantise.constants import quantised_constants
from hybrid.compiler.quantise.gate import Agreement, Limit, accept, divergence, measure
from hybrid.compiler.quantise.quantise_graph import quantise_graph
from hybrid.shared_protocol.compile_errors import CompileError, TooInexact
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.networks import random_network

IDS = np.random.default_rng(8).integers(0, 320, 21).tolist()


def test_divergence_is_that_of_the_two_distributions() -> None:
    even, uneven = np.log(np.array([[0.5, 0.5], [0.5, 0.5]], np.float32)), np.log(np.array([[0.75, 0.25], [0.5, 0.5]], np.float32))
    expected = 0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)
    np.testing.assert_allclose(divergence(even, uneven + 7), [expected, 0], atol=1e-7)


def test_a_graph_agrees_with_itself_and_strays_with_fewer_bits(tiny_llama: Model) -> None:
    model = random_network(tiny_llama, 6, weights="F16")
    graph = capture(model.architecture, rows=8, logit_rows=8, context=32, name="g")
    source = (graph, constants_of(model, graph))
    eight, four = (quantise_graph(graph, scheme) for scheme in ("w8a8", "w4a8"))
    same, less, least = (
        measure(source, network, [IDS[:13], IDS[13:]])
        for network in (source, (eight, quantised_constants(model, eight)), (four, quantised_constants(model, four)))
    )
    assert same == Agreement(21, 0, 0, 1)
    assert 0 < less.kl_mean < least.kl_mean and less.kl_mean < less.kl_p99 and less.top1 >= least.top1


def test_beyond_a_limit_both_figures_are_told() -> None:
    accept(Agreement(9, 0.09, 1.0, 0.86))
    for strays in (Agreement(9, 0.101, 0.4, 0.9), Agreement(9, 0.05, 0.4, 0.849)):
        with pytest.raises(TooInexact, match=rf"{strays.kl_mean:.4f} nats .* {strays.top1:.1%}.*limit is 0\.1 nats and 85\.0%"):
            accept(strays)
    accept(Agreement(9, 0.3, 1.0, 0.6), Limit(kl_mean=0.4, top1=0.5))


def test_what_cannot_be_compared_is_refused(tiny_llama: Model) -> None:
    graph = capture(tiny_llama.architecture, rows=8, logit_rows=8, context=32, name="g")
    few = capture(tiny_llama.architecture, rows=8, logit_rows=1, context=32, name="few")
    constants = constants_of(tiny_llama, graph)
    with pytest.raises(CompileError, match="few has logits for 1 of its 8 rows"):
        measure((few, constants), (graph, constants), [IDS])
    with pytest.raises(CompileError, match="at least one token"):
        measure((graph, constants), (graph, constants), [])
    broken = {**constants, "output_norm.weight": np.full(64, np.inf, np.float32)}
    with pytest.raises(CompileError, match="not finite"):
        measure((graph, constants), (graph, broken), [IDS])
