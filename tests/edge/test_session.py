"""A conversation on the device, with the real model."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hybrid import LLM
from hybrid.edge.native import NativeRuntime
from hybrid.edge.session import Session
from hybrid.shared_protocol.errors import Cancelled, ContextOverflow, InvalidRequest, NoHiddenStates
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.support.toy_runtime import ToyRuntime

ASK = [{"role": "user", "content": "Name three colours."}]
PARAMS = SamplingParams(temperature=0.8, seed=5, max_tokens=12)


@pytest.fixture(scope="module")
def session(smollm2: Model) -> Iterator[Session]:
    session = Session(NativeRuntime(smollm2, context=256), smollm2)
    yield session
    session.held.close()


def test_what_a_later_turn_shares_is_not_computed_again(session: Session) -> None:
    first = session.chat(ASK, PARAMS)
    reply = "".join(chunk.text for chunk in first)
    turns = [*ASK, {"role": "assistant", "content": reply}, {"role": "user", "content": "And one more?"}]
    second = session.chat(turns, PARAMS)
    assert second.num_cached >= first.num_prompt
    warm = [chunk.token_id for chunk in second]
    session.held.truncate(0)
    cold = session.chat(turns, PARAMS)
    assert cold.num_cached == 0
    assert [chunk.token_id for chunk in cold] == warm


def test_the_same_prompt_again_computes_its_last_token_only(session: Session) -> None:
    first = [chunk.token_id for chunk in session.chat(ASK, PARAMS)]
    again = session.chat(ASK, PARAMS)
    assert again.num_cached == again.num_prompt - 1
    assert [chunk.token_id for chunk in again] == first


def test_every_token_brings_how_likely_it_was(session: Session) -> None:
    chunks = list(session.chat(ASK, SamplingParams(temperature=0.0, max_tokens=6, logprobs=3)))
    assert all(chunk.signal.logprob <= 0 for chunk in chunks)
    entries = [entry for chunk in chunks for entry in chunk.logprobs]
    assert [entry.logprob for entry in entries] == pytest.approx([chunk.signal.logprob for chunk in chunks], abs=1e-4)
    assert all(entry.top_logprobs[0].logprob == entry.logprob and len(entry.top_logprobs) == 3 for entry in entries)
    assert "".join(entry.token for entry in entries) == "".join(chunk.text for chunk in chunks)
    assert [chunk.finish_reason for chunk in chunks] == [None] * 5 + ["length"]


def test_a_seed_is_drawn_when_none_is_given_and_gives_the_same_again(session: Session) -> None:
    drawn = session.chat(ASK, SamplingParams(temperature=1.0, max_tokens=5))
    text = [chunk.token_id for chunk in drawn]
    assert text == [chunk.token_id for chunk in session.chat(ASK, SamplingParams(temperature=1.0, max_tokens=5, seed=drawn.seed))]


def test_a_stop_string_ends_the_answer_and_is_not_shown(session: Session) -> None:
    whole = "".join(chunk.text for chunk in session.chat(ASK, SamplingParams(temperature=0.0, max_tokens=12)))
    stop = whole[4:9]
    chunks = list(session.chat(ASK, SamplingParams(temperature=0.0, max_tokens=12, stop=(stop,))))
    assert "".join(chunk.text for chunk in chunks) == whole[: whole.index(stop)]
    assert chunks[-1].finish_reason == "stop"


def test_a_stop_token_ends_the_answer_and_is_no_text(session: Session) -> None:
    ids = [chunk.token_id for chunk in session.chat(ASK, PARAMS)]
    params = SamplingParams(temperature=0.8, seed=5, max_tokens=12, stop_token_ids=(ids[3],))
    chunks = list(session.chat(ASK, params))
    end = ids.index(ids[3])
    assert [chunk.token_id for chunk in chunks] == ids[: end + 1]
    assert chunks[-1].text == ""
    assert chunks[-1].finish_reason == "stop"


def test_an_answer_continues_from_a_known_beginning_as_if_it_had_been_its_own(session: Session) -> None:
    prompt = session.model.render_chat(ASK)
    whole = list(session.generate(prompt, PARAMS))
    ids = [chunk.token_id for chunk in whole]
    session.held.truncate(0)
    rest = session.generate(prompt, PARAMS, known=ids[:5])
    assert rest.known_text + "".join(chunk.text for chunk in rest) == "".join(chunk.text for chunk in whole)
    with pytest.raises(InvalidRequest):
        session.generate(prompt, PARAMS, known=ids)


def test_what_does_not_fit_is_refused_with_the_numbers(session: Session) -> None:
    prompt = [1] * 250
    for ids, params in ((prompt, SamplingParams(max_tokens=8)), ([1] * 257, SamplingParams())):
        with pytest.raises(ContextOverflow) as error:
            session.generate(ids, params)
        assert (error.value.asked, error.value.limit) == (257, 256)
    to_the_end = list(session.generate(prompt, SamplingParams(temperature=0.0, ignore_eos=True)))
    assert len(to_the_end) == 7  # the last one is never fed
    assert to_the_end[-1].finish_reason == "length"


def test_at_the_end_of_the_context_it_writes_what_the_cloud_writes(tiny_llama: Model) -> None:
    params = SamplingParams(temperature=0.0, ignore_eos=True)
    runtime = NativeRuntime(tiny_llama, context=64)
    with LLM(tiny_llama, max_model_len=64) as cloud:
        for length in (1, 63, 64):
            prompt = list(range(10, 10 + length))
            (expected,) = cloud.generate([prompt], params)
            found = list(Session(runtime, tiny_llama).generate(prompt, params))
            assert tuple(chunk.token_id for chunk in found) == expected.token_ids
            assert len(found) == 65 - length and found[-1].finish_reason == expected.finish_reason == "length"
    runtime.close()


def test_a_cancelled_answer_ends_and_the_next_one_is_right(session: Session) -> None:
    expected = [chunk.token_id for chunk in session.chat(ASK, PARAMS)]
    answer = session.chat(ASK, PARAMS)
    next(answer)
    thread = threading.Thread(target=session.cancel)
    thread.start()
    thread.join()
    with pytest.raises(Cancelled):
        list(answer)
    assert [chunk.token_id for chunk in session.chat(ASK, PARAMS)] == expected


def test_hidden_states_come_with_the_tokens_when_asked_for_and_change_none_of_them(session: Session) -> None:
    prompt = session.model.render_chat(ASK)
    plain = list(session.generate(prompt, PARAMS))
    session.held.truncate(0)
    chunks = list(session.generate(prompt, PARAMS, hidden=True))
    assert [(chunk.token_id, chunk.signal) for chunk in chunks] == [(chunk.token_id, chunk.signal) for chunk in plain]
    assert all(chunk.hidden is None for chunk in plain)
    session.held.truncate(0)  # all at once: the state that each token was drawn from
    ids = [chunk.token_id for chunk in chunks]
    _, states = session.held.extend_with_hidden([*prompt, *ids[:-1]], rows=len(ids))
    np.testing.assert_array_equal(np.array([chunk.hidden for chunk in chunks]), states)
    assert session.held.ids == [*prompt, *ids[:-1]]


def test_a_runtime_that_gives_no_hidden_states_says_so_before_it_computes(tiny_llama: Model) -> None:
    runtime = ToyRuntime()
    session = Session(runtime, tiny_llama)
    assert session.held.hidden_size is None
    with pytest.raises(NoHiddenStates, match="the runtime of toy gives no hidden states"):
        session.generate([1, 2], PARAMS, hidden=True)
    with pytest.raises(NoHiddenStates):
        session.held.extend_with_hidden([1, 2])
    assert runtime.fed == 0
