"""What the kernels compute, against code that shares nothing with them."""

import numpy as np
import pytest
from hybrid.npu_backends.cpu.reference import ReferenceExecutor
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.executors import ISAS, few_words, first_layer, native, needs_native
from hybrid.tests.support.kernel_twin import ROUNDING, KernelTwin, exponential
from hybrid.tests.support.networks import FAMILIES, random_network, rotary
from hybrid.tests.support.steps import relative_errors, run

PROMPT = "The capital of France is Paris, and the capital of Germany is Berlin."
IDS = [(i * 37 + 5) % 320 for i in range(60)]
TABLE = [1, 2, 3, 4]


@pytest.mark.parametrize("isa", ISAS)
def test_the_kernels_equal_their_twin_in_numpy_to_the_bit(tiny_llama: Model, isa: str) -> None:
    with native(tiny_llama, isa) as executor:
        np.testing.assert_array_equal(run(executor, IDS, TABLE), KernelTwin(tiny_llama, ROUNDING[isa]).logits_of(IDS))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "llama"])
def test_the_kernels_equal_their_twin_for_every_family(tiny_llama: Model, family: str, isa: str) -> None:
    model = random_network(tiny_llama, **FAMILIES[family])
    with native(model, isa) as executor:
        np.testing.assert_array_equal(run(executor, IDS, TABLE), KernelTwin(model, ROUNDING[isa]).logits_of(IDS))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    ("head_dim", "heads", "kv_heads"), [(64, 9, 1), (80, 2, 2), (96, 2, 1), (128, 3, 1), (256, 2, 1), (16, 6, 2), (32, 16, 1)]
)
def test_the_kernels_equal_their_twin_for_every_size_of_heads(
    tiny_llama: Model, isa: str, head_dim: int, heads: int, kv_heads: int
) -> None:
    sizes = {"head_dim": head_dim, "num_heads": heads, "num_kv_heads": kv_heads, "attention_scale": head_dim**-0.5}
    model = random_network(tiny_llama, num_layers=1, rotary=rotary(head_dim // 16 * 16), vocab_size=64, **sizes)
    ids = [id % 64 for id in IDS[:35]]
    with native(model, isa) as executor:
        np.testing.assert_array_equal(run(executor, ids, TABLE), KernelTwin(model, ROUNDING[isa]).logits_of(ids))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("rows", [2, 3, 35])
def test_the_kernels_equal_their_twin_where_panels_are_taken_in_pairs_and_one_is_left(tiny_llama: Model, isa: str, rows: int) -> None:
    # 10 panels onto the stream, 9 of the vocabulary, the last of them part padding: two an item from three rows on, with one thread
    model = random_network(tiny_llama, num_layers=1, hidden_size=160, vocab_size=141)
    ids = [id % 141 for id in IDS[:rows]]
    with native(model, isa) as executor:
        np.testing.assert_array_equal(run(executor, ids, TABLE), KernelTwin(model, ROUNDING[isa]).logits_of(ids))


@pytest.mark.parametrize("isa", ISAS)
def test_all_layers_of_the_real_model_equal_their_twin_to_the_bit(smollm2: Model, isa: str) -> None:
    model, ids = few_words(smollm2, 600), [504, 357, 282]
    with native(model, isa) as executor:
        np.testing.assert_array_equal(run(executor, ids, TABLE), KernelTwin(model, ROUNDING[isa]).logits_of(ids))


@pytest.mark.parametrize("isa", ISAS)
def test_a_small_model_stays_within_a_thousandth_of_the_reference_with_int8_inputs(tiny_llama: Model, isa: str) -> None:
    expected = run(ReferenceExecutor(tiny_llama, num_blocks=8, emulate_int8=True), IDS, TABLE)
    with native(tiny_llama, isa) as executor:
        errors = relative_errors(run(executor, IDS, TABLE), expected)
    assert np.median(errors) < 1e-6 and errors.max() < 1e-3


@needs_native
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_equals_the_reference_with_int8_inputs_but_for_inputs_on_a_rounding_boundary(tiny_llama: Model, family: str) -> None:
    changes = dict(FAMILIES[family])
    if "windows" in changes:
        changes["windows"] = tuple(3 * bool(window) for window in changes["windows"])
    model = random_network(tiny_llama, **changes)
    reference = ReferenceExecutor(model, num_blocks=8, emulate_int8=True)
    pieces = [IDS[at : at + 6] for at in range(0, 60, 6)]  # short: one input that falls to the other side changes all later rows a little
    with native(model) as executor:
        errors = [relative_errors(run(executor, ids, [1]), run(reference, ids, [1])) for ids in pieces]
    assert np.quantile(errors, 0.8) < 1e-6 and np.max(errors) < 0.1


@pytest.mark.parametrize("isa", ISAS)
def test_a_real_layer_stays_within_a_thousandth_of_the_reference_with_int8_inputs(smollm2: Model, isa: str) -> None:
    # Not all thirty: an input on a rounding boundary of int8 falls to either side in two orders of summation, and layers amplify that
    # to per cents. So even in one layer a row may leave the bound; the twin above is what checks the whole depth.
    layer, ids = first_layer(smollm2), smollm2.tokenizer.encode(PROMPT)
    expected = run(ReferenceExecutor(layer, num_blocks=8, emulate_int8=True), ids, TABLE)
    with native(layer, isa) as executor:
        errors = np.sort(relative_errors(run(executor, ids, TABLE), expected))
    assert np.median(errors) < 1e-6 and errors[-3] < 1e-3 and errors[-1] < 1e-2


@needs_native
def test_the_real_model_says_what_float32_says(smollm2: Model) -> None:
    ids = smollm2.tokenizer.encode(PROMPT)
    expected = run(ReferenceExecutor(smollm2, num_blocks=8), ids, TABLE)
    with native(smollm2) as executor:
        found = run(executor, ids, TABLE)
    assert (found.argmax(axis=1) == expected.argmax(axis=1)).all()
    assert np.median(relative_errors(found, expected)) < 0.1  # what int8 inputs cost


def test_the_exponential_is_right_to_two_units_in_the_last_place() -> None:
    x = np.linspace(-87, 88, 200_001).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    assert np.abs(exponential(x) / exact - 1).max() < 2 * np.finfo(np.float32).eps
    assert exponential(np.array([-87.5, -np.inf], np.float32)).tolist() == [0.0, 0.0]
