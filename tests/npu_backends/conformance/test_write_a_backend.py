"""The page that says how to write a backend writes one that passes the kit."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hybrid.npu_backends.base import Artifact
from hybrid.npu_backends.conformance import kit
from hybrid.npu_backends.conformance.cases import CASES, TAILS

PAGE = Path(__file__).parents[3] / "docs/write_a_backend.md"


@pytest.fixture(scope="module")
def toy() -> ModuleType:
    """The page's blocks as one module."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 5
    module = ModuleType("toy_backend")
    sys.modules[module.__name__] = module
    exec(compile("\n".join(blocks), str(PAGE), "exec", dont_inherit=True), module.__dict__)
    return module


def test_the_adapter_of_the_page_passes_the_kit(toy: ModuleType) -> None:
    """Its last block runs the kit; here is that the kit had something to run."""
    chip = toy.ToyAdapter()
    taken = {case.name for case in CASES if chip.supports(case.make(TAILS)) is None}
    assert taken == {"add", "add for all rows", "multiply", "silu", "linear_i8", "reshape"}
    assert chip.supports(next(case for case in CASES if case.name == "softmax").make(TAILS)) == "toy has no instruction for softmax"


def test_a_slip_in_it_is_found(toy: ModuleType) -> None:
    class Forgetful(toy.ToyAdapter):  # type: ignore[name-defined, misc]
        def load(self, artifact: Artifact, constants: Mapping[str, Any]) -> Any:
            graph, _ = super().load(artifact, constants)
            return graph, {}

    assert {finding.check for finding in kit.check(Forgetful(), sizes=(TAILS,))} == {"numbers", "memory"}
