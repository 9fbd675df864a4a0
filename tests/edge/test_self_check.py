"""What the device's model says of its own answer."""

from typing import Any

import pytest
from hybrid.edge.native import NativeRuntime
from hybrid.edge.self_check import answers_agree, p_true
from hybrid.edge.session import Session
from hybrid.router.confidence.self_check import ask_whether_true, probability_of_true
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.sampling import SamplingParams

ASK = [{"role": "user", "content": "What is the capital of France?"}]
PARAMS = SamplingParams(temperature=0.0, max_tokens=8, seed=3)


@pytest.fixture
def session(smollm2: Model) -> Any:
    session = Session(NativeRuntime(smollm2, context=256), smollm2)
    yield session
    session.held.close()


def text_of(session: Session, params: SamplingParams = PARAMS) -> str:
    return "".join(chunk.text for chunk in session.chat(ASK, params))


def test_the_probability_is_that_of_the_reply_s_first_token(session: Session) -> None:
    text = text_of(session)
    found = p_true(session, ASK, text)
    session.held.truncate(0)
    ids = session.model.render_chat(ask_whether_true(ASK, text))
    logits = session.held.extend(ids, rows=1)[0, : session.model.tokenizer.vocab_size]
    assert found == probability_of_true(logits, session.model.tokenizer)
    assert 0 < found < 1
    assert found != p_true(session, ASK, "Seven elephants.")


def test_asking_leaves_the_session_as_good_as_before(session: Session) -> None:
    text = text_of(session)
    p_true(session, ASK, text)
    assert text_of(session) == text


def test_samples_are_drawn_with_seeds_of_their_own_and_come_out_the_same_again(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    prompt, drawn = session.model.render_chat(ASK), []
    generate = Session.generate

    def noted(self: Session, ids: Any, params: SamplingParams, **options: Any) -> Any:
        drawn.append(params)
        return generate(self, ids, params, **options)

    monkeypatch.setattr(Session, "generate", noted)
    first = answers_agree(session, prompt, PARAMS, "The capital of France is Paris.", 2)
    again = answers_agree(session, prompt, PARAMS, "The capital of France is Paris.", 2)
    assert first == again is not None and 0 <= first <= 1
    assert len({params.seed for params in drawn}) == 2 and all(params.temperature == 0.7 for params in drawn)


def test_what_does_not_fit_the_context_is_not_known(session: Session) -> None:
    assert p_true(session, ASK, "word " * 300) is None
    long = session.model.render_chat(ASK) * 20
    assert answers_agree(session, long, PARAMS, "x", 2) is None
