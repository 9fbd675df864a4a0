"""The definition of a draw against the contract in plain Python."""

import math

import numpy as np
from hybrid.shared_protocol import noise
from hybrid.shared_protocol.sampling import SamplingParams, sample_full
from hybrid.tests.support.sampling import some_params, values
from hypothesis import given
from hypothesis import strategies as st


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
