"""Rows of logits, filters, and what they keep."""

import math

import numpy as np
from hybrid.shared_protocol import filters
from hybrid.shared_protocol.sampling import SamplingParams
from hypothesis import strategies as st


def row(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


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


def kept(logits: np.ndarray, **params: float) -> list[int]:
    ids = filters.survivors(logits, SamplingParams(**params))
    return np.flatnonzero(logits > -np.inf).tolist() if ids is None else ids.tolist()
