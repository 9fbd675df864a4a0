"""What happens between the device's first token and the choice of who answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hybrid.edge.held_tokens import HeldTokens
from hybrid.edge.session import EdgeAnswer, Session
from hybrid.quant.at_load import quantised
from hybrid.router.calibration import Logistic
from hybrid.router.confidence.gate import Gate, GroupGate, Stop
from hybrid.router.confidence.probe import Probe
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol.model import Model, load_model
from hybrid.shared_protocol.openai import ChatCompletion, DeviceAnswer
from hybrid.tests.support.hf_writer import write_tiny_folder, write_tokenizer
from hybrid.tests.support.scripted_client import CASCADE, TO_EDGE, ask, client_of, failing, stream, text_of, told, well
from hybrid.tests.support.scripted_server import response

NEVER_GOOD = CASCADE + "1.0\nstop_below = 0.0\n"
GIVEN_UP = CASCADE + "0.0\nstop_after = 2\nstop_below = 1.0\n"  # no token of the little model is certain


def first(answer: ChatCompletion) -> DeviceAnswer:
    assert answer.hybrid is not None and answer.hybrid.device_answer is not None
    return answer.hybrid.device_answer


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, list[int]]]:
    """(tokens known before, token ids drawn) of every answer of the device."""
    seen: list[tuple[int, list[int]]] = []
    generate = Session.generate

    def counted(self: Session, prompt_ids: Sequence[int], params: Any, *, known: Sequence[int] = (), hidden: bool = False) -> EdgeAnswer:
        answer = generate(self, prompt_ids, params, known=known, hidden=hidden)
        drawn: list[int] = []
        seen.append((len(known), drawn))

        def noted() -> Any:
            for chunk in answer.chunks:
                drawn.append(chunk.token_id)
                yield chunk

        return EdgeAnswer(answer.seed, answer.num_prompt, answer.num_cached, answer.known_text, noted())

    monkeypatch.setattr(Session, "generate", counted)
    return seen


def gate_for(model: Model, tmp_path: Path, **changes: Any) -> str:
    """A gate file in which every signal means a probability of .9, and the policy's line that names it."""
    policy = Policy.default().confidence
    group = GroupGate(
        map=Logistic(0.0, 2.1972), n=100, correct=90, auroc=0.5, ece_before=0.4, ece_after=0.0, stop=changes.pop("stop", None)
    )
    identity = {"file_hash": model.card.file_hash, "quantisation": model.card.quantisation, "signal": policy.signal} | changes
    gate = Gate(
        format="hybrid-gate-1",
        model=model.card.name,
        quantile=policy.quantile,
        quantile_weight=policy.quantile_weight,
        data_hash="0" * 64,
        groups={"any": group},
        **identity,
    )
    path = tmp_path / "gate.json"
    path.write_bytes(gate.to_json())
    return f"gate = {str(path)!r}\n"


async def test_an_answer_that_is_lost_is_given_up_and_what_that_saved_is_told(smollm2: Model, calls: list[tuple[int, list[int]]]) -> None:
    async with client_of(smollm2, GIVEN_UP, well) as (client, _):
        answer = await ask(client, max_tokens=40)
    assert text_of(answer) == "from afar"
    assert answer.hybrid is not None and answer.hybrid.rule == "confidence.stop_below"
    assert first(answer) == DeviceAnswer("stopped_early", tokens=2, saved_at_most=38)
    assert [len(drawn) for _, drawn in calls] == [2]


async def test_one_that_cannot_pass_any_more_is_given_up_at_once(smollm2: Model, calls: list[tuple[int, list[int]]]) -> None:
    hopeless = CASCADE + '1.0\nsignal = "minimum"\nstop_below = 0.0\n'
    async with client_of(smollm2, hopeless, well) as (client, _):
        answer = await ask(client, max_tokens=40)
    assert answer.hybrid is not None and answer.hybrid.rule == "confidence.threshold"
    assert first(answer) == DeviceAnswer("stopped_early", tokens=1, saved_at_most=39)
    assert [len(drawn) for _, drawn in calls] == [1]


@pytest.mark.parametrize("streamed", [False, True])
async def test_one_that_was_given_up_is_gone_on_with_when_the_cloud_fails(
    smollm2: Model, calls: list[tuple[int, list[int]]], streamed: bool
) -> None:
    call = stream if streamed else ask
    async with client_of(smollm2, TO_EDGE) as (client, _):
        whole = text_of(await call(client, max_tokens=12))
    async with client_of(smollm2, GIVEN_UP, failing(response(503, b""))) as (client, _):
        answer = await call(client, max_tokens=12)
    assert text_of(answer) == whole
    (_, alone), (_, begun), (known, rest) = calls
    assert (known, begun + rest) == (2, alone)  # nothing is computed twice
    if isinstance(answer, ChatCompletion):
        assert told(answer) == ("edge", "cloud_unreachable", [("edge", 12)])
        assert answer.usage.completion_tokens == 12
        assert first(answer).gate == "stopped_early"


async def test_its_log_probabilities_are_whole_all_the_same(smollm2: Model) -> None:
    async with client_of(smollm2, GIVEN_UP, failing(response(503, b""))) as (client, _):
        answer = await ask(client, logprobs=True)
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None and logprobs.content is not None
    assert "".join(entry.token for entry in logprobs.content) == text_of(answer) != ""


async def test_a_gate_makes_it_a_probability_and_its_calibration_is_told(smollm2: Model, tmp_path: Path) -> None:
    kept = CASCADE + "0.89\n" + gate_for(smollm2, tmp_path)
    async with client_of(smollm2, kept, well) as (client, _):
        answer = await ask(client)
    assert told(answer)[0] == "edge"
    found = first(answer)
    assert (found.gate, found.confidence, found.tokens) == ("passed", pytest.approx(0.9, abs=1e-4), 6)
    assert found.calibration_id is not None and len(found.calibration_id) == 16


@pytest.mark.parametrize("other", [{"file_hash": "0" * 64}, {"quantisation": "Q8_0"}])
async def test_a_gate_of_another_model_is_not_used_and_the_device_not_asked_in_vain(
    smollm2: Model, tmp_path: Path, calls: list[tuple[int, list[int]]], other: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    mismatched = CASCADE + "0.0\n" + gate_for(smollm2, tmp_path, **other)
    async with client_of(smollm2, mismatched, well) as (client, _):
        answers = [await ask(client), await ask(client)]
    for answer in answers:
        assert text_of(answer) == "from afar"
        assert answer.hybrid is not None and answer.hybrid.rule == "confidence.gate"
        assert first(answer) == DeviceAnswer("unavailable")
    assert calls == []
    assert len([record for record in caplog.records if "calibrated for" in record.message]) == 1


async def test_a_folder_s_gate_is_that_of_the_weights_as_they_are_rounded_at_load(tmp_path: Path) -> None:
    folder = write_tiny_folder(tmp_path / "tiny", "llama")
    write_tokenizer(folder)
    model = load_model(folder)
    for of, state in ((model, "unavailable"), (quantised(model), "passed")):
        async with client_of(model, CASCADE + "0.5\nstop_below = 0.0\n" + gate_for(of, tmp_path), well) as (client, _):
            assert first(await ask(client)).gate == state


async def test_a_gate_that_does_not_fit_leaves_the_device_to_help_when_the_cloud_is_gone(smollm2: Model, tmp_path: Path) -> None:
    mismatched = CASCADE + "0.0\n" + gate_for(smollm2, tmp_path, quantisation="Q8_0")
    async with client_of(smollm2, mismatched, failing(response(503, b""))) as (client, _):
        answer = await ask(client)
    assert told(answer) == ("edge", "cloud_unreachable", [("edge", 6)])


async def test_a_gate_s_own_bound_goes_before_the_policy_s_unless_that_says_never(smollm2: Model, tmp_path: Path) -> None:
    gate = gate_for(smollm2, tmp_path, stop=Stop(after=3, below=1.0, loss=0.05, n=40))
    async with client_of(smollm2, CASCADE + "0.5\n" + gate, well) as (client, _):
        assert (first(await ask(client)).gate, first(await ask(client)).tokens) == ("stopped_early", 3)
    async with client_of(smollm2, CASCADE + "0.5\nstop_below = 0.0\n" + gate, well) as (client, _):
        assert first(await ask(client)).gate == "passed"


async def test_a_policy_that_judges_nothing_keeps_the_answer_and_shows_it_as_it_comes(smollm2: Model) -> None:
    async with client_of(smollm2, NEVER_GOOD + 'signal = "none"\n', well) as (client, _):
        answer = await ask(client)
        assert told(answer) == ("edge", "simple", [("edge", 6)])
        assert first(answer) == DeviceAnswer("skipped")
        chunks = await client.chat.completions.create(messages=[{"role": "user", "content": "Say hello."}], stream=True, max_tokens=200)
        async for _ in chunks:
            break  # a whole answer of 200 tokens would have been waited for
        assert client._services.device is not None
        assert client._services.device.session.held.length < 150
        await chunks.close()


DRAFTED = NEVER_GOOD + 'signal = "blend"\n[cascade]\ndraft_as_context = true\n'


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_cloud_gets_the_device_s_answer_as_a_draft_where_the_policy_says_so(smollm2: Model, streamed: bool) -> None:
    async with client_of(smollm2, TO_EDGE) as (client, _):
        draft = text_of(await ask(client))
    async with client_of(smollm2, DRAFTED, well) as (client, server):
        if streamed:
            info = (await stream(client))[-1].hybrid
        else:
            info = (await ask(client)).hybrid
    assert info is not None and info.device_answer is not None and info.device_answer.draft == "sent"
    (asked,) = [request.json() for request in server.requests if request.method == "POST"]
    (message,) = asked["messages"]
    assert message["content"].startswith("Say hello.\n\n") and message["content"].endswith(f"Draft:\n{draft}")


async def test_a_draft_that_holds_something_private_is_not_sent(smollm2: Model) -> None:
    async with client_of(smollm2, TO_EDGE) as (client, _):
        draft = text_of(await ask(client, max_tokens=20, temperature=0.0))
    word = max(re.findall(r"[a-z]{3,}", draft.lower()), key=len)
    private = f"{DRAFTED}[privacy]\ntopic_words = [{word!r}]\n"
    async with client_of(smollm2, private, well) as (client, server):
        answer = await ask(client, max_tokens=20, temperature=0.0)
    assert text_of(answer) == "from afar"
    assert first(answer).draft == "private"
    (asked,) = [request.json() for request in server.requests if request.method == "POST"]
    assert asked["messages"] == [{"role": "user", "content": "Say hello."}]


async def test_an_answer_that_was_given_up_is_no_draft(smollm2: Model) -> None:
    async with client_of(smollm2, GIVEN_UP + "[cascade]\ndraft_as_context = true\n", well) as (client, server):
        answer = await ask(client)
    assert (first(answer).gate, first(answer).draft) == ("stopped_early", None)
    (asked,) = [request.json() for request in server.requests if request.method == "POST"]
    assert asked["messages"] == [{"role": "user", "content": "Say hello."}]


@pytest.mark.parametrize("signal", ["p_true", "agreement"])
async def test_the_model_is_asked_about_its_answer_where_the_policy_says_so(
    smollm2: Model, calls: list[tuple[int, list[int]]], signal: str
) -> None:
    asked = f'0.0\nsignal = "{signal}"\nsamples = 2\n'
    async with client_of(smollm2, CASCADE + asked, well) as (client, _):
        answer, again = await ask(client), await ask(client)
    assert told(answer) == ("edge", "simple", [("edge", 6)])
    found = first(answer).confidence
    assert found is not None and 0 <= found <= 1 and found == first(again).confidence
    assert [len(drawn) for _, drawn in calls[: len(calls) // 2]] == ([6] if signal == "p_true" else [6, 6, 6])


def probe_for(model: Model, tmp_path: Path, size: int | None = None) -> str:
    """A policy whose probe reads one number of the hidden state and the certainty of the tokens."""
    weights = np.zeros(size or model.architecture.hidden_size, "<f4")
    weights[1] = 0.25
    probe = Probe(weights=weights.tobytes(), certainty=2.0, bias=0.5, ridge=1.0, n=80, correct=40)
    return CASCADE + '0.0\nstop_below = 0.0\nsignal = "probe"\n' + gate_for(model, tmp_path, signal="probe", probe=probe)


async def test_a_probe_reads_the_state_that_the_last_token_was_drawn_from(
    smollm2: Model, tmp_path: Path, calls: list[tuple[int, list[int]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Any] = []
    monkeypatch.setattr(Probe, "__call__", lambda self, state, tokens: read.append((state, len(tokens))) or 0.5)
    async with client_of(smollm2, probe_for(smollm2, tmp_path), well) as (client, _):
        answer = await ask(client)
        assert client._device is not None
        held = client._device.session.held
        ids = list(held.ids)
        held.truncate(0)
        _, states = held.extend_with_hidden(ids)
    ((state, count),) = read
    np.testing.assert_array_equal(state, states[0])
    assert (told(answer)[0], first(answer).gate, count) == ("edge", "passed", 6)
    assert ids[-5:] == calls[0][1][:-1]


async def test_a_runtime_without_hidden_states_or_with_others_is_not_asked_in_vain(
    smollm2: Model, tmp_path: Path, calls: list[tuple[int, list[int]]], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with client_of(smollm2, probe_for(smollm2, tmp_path, size=3), well) as (client, _):
        other = await ask(client)
    monkeypatch.setattr(HeldTokens, "hidden_size", None)
    async with client_of(smollm2, probe_for(smollm2, tmp_path), well) as (client, _):
        none = await ask(client)
    for answer in (other, none):
        assert (text_of(answer), first(answer)) == ("from afar", DeviceAnswer("unavailable"))
    assert calls == []
    assert "reads hidden states of 3 numbers, those of" in caplog.text and "gives none" in caplog.text
