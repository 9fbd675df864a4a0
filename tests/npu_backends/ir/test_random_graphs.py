"""What other tests take for any graph has every kind of operation in it, and runs."""

import random

import numpy as np
from hybrid.npu_backends.ir.graph import subgraph
from hybrid.npu_backends.ir.interpret import interpret
from hybrid.npu_backends.ir.kinds import KINDS
from hybrid.tests.support.graphs import random_arrays, random_graph


def test_random_graphs_have_every_kind_of_operation() -> None:
    kinds = {op.kind for seed in range(40) for op in random_graph(random.Random(seed), 20).ops}
    assert kinds == set(KINDS)


def test_two_halves_of_a_graph_compute_what_the_whole_does() -> None:
    for seed in range(40):
        graph = random_graph(random.Random(seed), 12)
        constants, inputs = random_arrays(graph, seed)
        whole, known = interpret(graph, constants, inputs), dict(inputs)
        for ops in (graph.ops[:6], graph.ops[6:]):
            known |= interpret(subgraph(graph, "half", ops), constants, known)
        for name, array in whole.items():
            np.testing.assert_array_equal(known[name], array)
