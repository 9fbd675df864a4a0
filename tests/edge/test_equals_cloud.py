"""Device and cloud are two programs with one text: same model, parameters and seed, same tokens, same characters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hybrid.cloud.engine.llm import LLM
from hybrid.edge.native import NativeRuntime
from hybrid.edge.session import Session
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.sampling import SamplingParams

PROMPTS = [json.loads(line)["turns"][0] for line in (Path(__file__).parents[1] / "data" / "prompts.jsonl").read_text().splitlines()][:2]


@pytest.fixture(scope="module")
def llm(smollm2: Model) -> Iterator[LLM]:
    with LLM(smollm2, max_model_len=512) as llm:
        yield llm


@pytest.fixture(scope="module")
def session(smollm2: Model) -> Iterator[Session]:
    session = Session(NativeRuntime(smollm2, context=512), smollm2)
    yield session
    session.held.close()


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(temperature=0.0, max_tokens=16),
        SamplingParams(temperature=0.8, seed=7, max_tokens=16),
        SamplingParams(temperature=1.0, top_p=0.9, top_k=40, min_p=0.02, seed=-3, max_tokens=16),
        SamplingParams(temperature=0.8, seed=7, max_tokens=16, stop=(" the", ".")),
    ],
    ids=["greedy", "sampled", "filtered", "stopped"],
)
def test_the_device_s_answer_is_the_cloud_s(llm: LLM, session: Session, params: SamplingParams) -> None:
    prompts = [session.model.render_chat([{"role": "user", "content": text}]) for text in PROMPTS]
    for prompt, expected in zip(prompts, llm.generate(prompts, params), strict=True):
        chunks = list(session.generate(prompt, params))
        assert [chunk.token_id for chunk in chunks] == list(expected.token_ids)
        assert "".join(chunk.text for chunk in chunks) == expected.text
        assert chunks[-1].finish_reason == expected.finish_reason
