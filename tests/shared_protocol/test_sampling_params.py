"""The ranges of the sampling parameters."""

import math

import pytest
from hybrid.shared_protocol.errors import InvalidRequest
from hybrid.shared_protocol.sampling import SamplingParams


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
        ("stop", "END"),  # it would be three strings
        ("stop", None),
        ("stop_token_ids", 7),
        ("ignore_eos", "no"),
    ],
)
def test_a_parameter_out_of_range_is_named(field: str, value: object) -> None:
    with pytest.raises(InvalidRequest) as caught:
        SamplingParams(**{field: value})
    assert caught.value.param == field
