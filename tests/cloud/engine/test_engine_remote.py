import random

import pytest
from hybrid.cloud.engine.messages import Draft, Refused, Stale, Verdict
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.shared_protocol.verify import prefix_hash
from hybrid.tests.cloud.engine.driving import DRAWN, GREEDY, Device, add_of, answers, collect, drafted, engine_of, prompts_of
from hybrid.tests.support.hash_executor import EOS, continuation
from hypothesis import given, settings
from hypothesis import strategies as st

PROMPT = prompts_of(1)[0]


def device_of(engine, name="s", prompt=PROMPT, params=GREEDY, *, k=4, corruption=0.0, seed=1) -> Device:
    return Device(engine, add_of(name, prompt, params, seed=seed, remote=True), k, corruption, random.Random(f"{name}{k}{corruption}"))


@pytest.mark.parametrize("params", [GREEDY, DRAWN], ids=["greedy", "drawn"])
@pytest.mark.parametrize("corruption", [0, 0.3, 1])
def test_whatever_a_device_drafts_the_text_is_the_engines_own(params, corruption) -> None:
    for k in range(9):
        device = device_of(engine_of(), params=params, k=k, corruption=corruption)
        assert drafted([device]) == [continuation(PROMPT, params, 1)]


def test_right_drafts_of_four_give_five_tokens_a_step() -> None:
    engine = engine_of()
    device = device_of(engine, params=SamplingParams(temperature=0, max_tokens=20, ignore_eos=True))
    drafted([device])
    assert engine.executor.steps == [8, 5, 5, 5, 5]


def test_sessions_of_many_devices_and_plain_requests_share_steps_and_change_nothing() -> None:
    prompts = prompts_of(6)
    for blocks, tokens in ((64, 512), (9, 512), (64, 3), (9, 3)):
        engine = engine_of(blocks, max_num_batched_tokens=tokens, max_num_seqs=4)
        devices = [device_of(engine, f"s{i}", prompt, DRAWN, k=i, corruption=0.3) for i, prompt in enumerate(prompts)]
        assert drafted(devices) == [continuation(prompt, DRAWN, 1) for prompt in prompts]
        assert answers(engine, [add_of(f"p{i}", prompt) for i, prompt in enumerate(prompts)]) == [
            continuation(prompt, GREEDY, 1) for prompt in prompts
        ]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from([0, 0.3, 1]), st.integers(1, 14), st.integers(1, 20)), min_size=1, max_size=5),
    st.integers(9, 20),
    st.sampled_from([1, 2, 4, 9, 64]),
    st.integers(1, 4),
)
def test_in_every_squeeze_of_tokens_blocks_and_places_sessions_end_with_the_right_text(asked, blocks, tokens, seqs) -> None:
    engine = engine_of(blocks, max_num_batched_tokens=tokens, max_num_seqs=seqs)
    devices, truth = [], []
    for i, (k, corruption, max_tokens, length) in enumerate(asked):
        prompt, params = prompts_of(1, length, seed=i % 2)[0], SamplingParams(temperature=0.8, max_tokens=max_tokens, logprobs=1)
        devices.append(device_of(engine, f"s{i}", prompt, params, k=k, corruption=corruption, seed=i))
        truth.append(continuation(prompt, params, i))
    assert drafted(devices) == truth


def started(k: int = 3, **kw) -> Device:
    """A device whose session is parked, with nothing drafted yet."""
    device = device_of(engine_of(), k=k, **kw)
    device.start()
    (output,) = device.engine.step()
    assert output.parked and output.answer is None and not device.engine.has_work
    return device


def ask(device: Device, **changes) -> object:
    """Send a draft; return the answer."""
    message = Draft(device.add.request_id, **({"round": 1, "base_len": 9, "prefix_hash": prefix_hash(PROMPT), "ids": ()} | changes))
    device.engine.draft(message)
    outputs = collect(device.engine).get(device.add.request_id, [])
    return outputs[-1].answer if outputs else None


def test_an_empty_window_is_a_plain_step() -> None:
    truth = continuation(PROMPT, GREEDY, 1)
    assert ask(started()) == Verdict(1, 0, truth[0], 10)


def test_a_repeated_round_is_answered_alike_and_computes_nothing() -> None:
    device, truth = started(), continuation(PROMPT, GREEDY, 1)
    first = ask(device, ids=(truth[0], 40))
    steps = len(device.engine.executor.steps)
    assert first == Verdict(1, 1, truth[1], 11) == ask(device, ids=(truth[0], 40))
    assert len(device.engine.executor.steps) == steps


def test_the_same_window_sent_twice_before_its_verdict_is_answered_once() -> None:
    device = started()
    device.send()
    device.engine.draft(device.draft())
    outputs = collect(device.engine)["s"]
    assert [type(o.answer) for o in outputs] == [Verdict]


def test_wrong_rounds_prefixes_and_ids_are_refused_and_the_session_goes_on() -> None:
    device, truth = started(), continuation(PROMPT, GREEDY, 1)
    assert ask(device, round=2).code == "round_order"
    assert ask(device, prefix_hash=bytes(16)).code == "prefix_hash"
    assert ask(device, ids=(48,)) == Refused(1, "token_id", "draft ids must be below 48")
    assert isinstance(ask(device, ids=(truth[0],)), Verdict)
    assert ask(device, ids=(truth[1],)).code == "round_conflict"


def test_a_window_that_starts_below_the_committed_end_is_compared_and_the_rest_verified() -> None:
    device, truth = started(), continuation(PROMPT, GREEDY, 1)
    ask(device)
    assert ask(device, round=2, ids=truth[:3]) == Verdict(2, 3, truth[3], 13)
    assert ask(device, round=3, ids=(40,)) == Stale(3, 9, truth[:4], 13)


def test_a_draft_that_comes_before_the_prompt_is_computed_waits_for_it() -> None:
    device, truth = device_of(engine_of(max_num_batched_tokens=4)), continuation(PROMPT, GREEDY, 1)
    device.start()
    assert ask(device, ids=truth[:2]) == Verdict(1, 2, truth[2], 12)


def test_drafts_for_requests_that_are_gone_or_not_remote_are_ignored() -> None:
    engine = engine_of()
    engine.draft(Draft("nobody", 1, 9, prefix_hash(PROMPT), ()))
    engine.add(add_of("plain", PROMPT))
    engine.draft(Draft("plain", 1, 9, prefix_hash(PROMPT), (1, 2)))
    assert all(o.answer is None for o in collect(engine)["plain"])
    device = started()
    device.engine.abort("s")
    assert ask(device) is None
    device.engine.check_idle()


def test_a_finish_inside_the_accepted_run_ends_the_session_there() -> None:
    params = SamplingParams(temperature=0, max_tokens=200)
    prompt = prompts_of(2)[1]
    truth = continuation(prompt, params, 1)
    assert truth[-1] == EOS
    device = started(params=params, prompt=prompt)
    device.engine.draft(Draft("s", 1, 9, prefix_hash(prompt), (*truth, 7, 8)))
    (output,) = collect(device.engine)["s"]
    assert (output.new_ids, output.finish_reason, output.stop_token_id, output.parked) == (truth, "stop", EOS, False)
    assert output.answer == Verdict(1, len(truth), None, 9 + len(truth))
    device.engine.check_idle()


@pytest.mark.parametrize("k", [0, 1, 2, 3, 4, 9])
def test_a_limit_of_three_tokens_holds_whatever_the_window(k: int) -> None:
    params = SamplingParams(temperature=0, max_tokens=3, ignore_eos=True)
    device = device_of(engine_of(), params=params, k=k)
    assert drafted([device]) == [continuation(PROMPT, params, 1)]
    assert device.finish == "length"


def test_a_prompt_of_one_token_parks_at_once() -> None:
    device = device_of(engine_of(), prompt=(5,))
    device.start()
    assert [(o.parked, o.new_ids) for o in device.engine.step()] == [(True, ())]
    assert device.engine.executor.steps == []


def test_drafts_never_enter_the_prefix_cache() -> None:
    device, truth = started(), continuation(PROMPT, GREEDY, 1)
    wrong = (truth[0], *(40 for _ in range(8)))
    ask(device, ids=wrong)
    device.engine.abort("s")
    device.engine.add(add_of("r", (*PROMPT, *wrong, 1), GREEDY))
    assert collect(device.engine)["r"][-1].num_cached == 8, "the prompt's two full blocks, and nothing that was rejected"
