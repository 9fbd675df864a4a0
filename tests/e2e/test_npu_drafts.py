"""The model on a simulated chip drafts for the cloud: whatever its rounding loses is acceptance, never text."""

from __future__ import annotations

from contextlib import closing

from hybrid.apps.exactness import alone, drafted
from hybrid.cloud.engine.llm import LLM
from hybrid.edge.open_runtime import open_runtime
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.sampling import SamplingParams

PROMPTS = [[1, 5, 9, 200], [(7 * i) % 300 for i in range(40)]]


def test_what_the_chip_drafts_is_the_cloud_s_text(tiny_llama: Model) -> None:
    params = SamplingParams(temperature=0.8, seed=3, max_tokens=16)
    with closing(LLM(tiny_llama, threads=1)) as llm, closing(open_runtime(tiny_llama, "npu", context=128, target="systolic-32")) as runtime:
        text = alone(llm, PROMPTS, params)
        assert drafted(llm, runtime, 5, 0.2, PROMPTS, params) == text
