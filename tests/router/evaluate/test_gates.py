"""A gate says what must not be, in one comparison; what cannot be measured does not pass."""

import pytest
from hybrid.router.evaluate.figure import Undefined
from hybrid.router.evaluate.gates import judge, parse_gate
from hybrid.shared_protocol.errors import InvalidRequest

FIGURES = {"cloud_share": 0.4, "apgr": 0.7, "changed": 0.051, "cost": Undefined("no prices"), "apgr.length": 0.6}


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("cloud_share > 0.4", False),
        ("cloud_share >= 0.4", True),
        ("cloud_share>40%", False),
        ("cloud_share >= 40 %", True),
        ("apgr < 0.7", False),
        ("apgr <= .7", True),
        ("changed > 5%", True),
        ("changed == 5.1%", True),
        ("changed != 0", True),
        ("apgr.length < 6e-1", False),
        ("cloud_share < -1", False),
    ],
)
def test_a_gate_fails_where_its_comparison_is_true(text: str, failed: bool) -> None:
    found = judge([parse_gate(text)], FIGURES)[0]
    assert found.failed is failed and found.to_dict() == {"gate": text, "value": FIGURES[found.gate.name], "failed": failed}
    assert ("failed" in found.sentence()) is failed


@pytest.mark.parametrize("text", ["cost > 1", "cost <= 1"])
def test_what_is_undefined_fails_either_way(text: str) -> None:
    found = judge([parse_gate(text)], FIGURES)[0]
    assert found.failed and found.sentence() == f"{text}: failed, since cost is undefined: no prices"
    assert found.to_dict()["value"] is None


@pytest.mark.parametrize(
    "text", ["", "apgr", "apgr > ", "0.4 < apgr", "apgr > 1 or 1", "__import__('os')", "apgr > nan", "a > 1; b > 2", "apgr > 1e9999"]
)
def test_nothing_else_is_a_gate(text: str) -> None:
    with pytest.raises(InvalidRequest, match="a gate is a name"):
        parse_gate(text)


def test_a_figure_that_is_unknown_is_a_usage_error_and_the_known_ones_are_named() -> None:
    with pytest.raises(InvalidRequest, match=r"no figure is called 'agpr'.*cloud_share, apgr") as caught:
        judge([parse_gate("agpr < 0.7")], FIGURES)
    assert caught.value.exit_code == 2
