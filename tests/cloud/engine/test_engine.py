import gc
import math
import random

import numpy as np
import pytest
from hybrid.cloud.engine.engine import Engine
from hybrid.cloud.engine.messages import Add, StepOutput
from hybrid.cloud.engine.prefix_cache import Chain
from hybrid.cloud.engine.request import Request
from hybrid.shared_protocol.errors import ContextOverflow, EngineFailed, InvalidRequest, Unavailable
from hybrid.shared_protocol.sampling import SamplingParams, sample
from hybrid.tests.cloud.engine.driving import DRAWN, GREEDY, add_of, answers, collect, engine_of, ids_of, prompts_of
from hybrid.tests.support.hash_executor import EOS, HashExecutor, continuation, logits_after
from hypothesis import given, settings
from hypothesis import strategies as st

PROMPTS = prompts_of(8)


def expected(params: SamplingParams) -> list[tuple[int, ...]]:
    return [continuation(prompt, params, seed=i) for i, prompt in enumerate(PROMPTS)]


def adds(params: SamplingParams, **kw) -> list[Add]:
    return [add_of(f"r{i}", prompt, params, seed=i, **kw) for i, prompt in enumerate(PROMPTS)]


@pytest.mark.parametrize("params", [GREEDY, DRAWN], ids=["greedy", "drawn"])
def test_the_answer_is_the_same_alone_batched_warm_chunked_and_after_preemption(params) -> None:
    truth = expected(params)
    assert [answers(engine_of(), [add])[0] for add in adds(params)] == truth, "alone"
    engine = engine_of()
    assert answers(engine, adds(params)) == truth, "batched"
    assert answers(engine, adds(params)) == truth, "warm"
    assert engine.stats().prefix_hits > 0
    for tokens in (1, 2, 7, 64):
        assert answers(engine_of(max_num_batched_tokens=tokens), adds(params)) == truth, f"at most {tokens} tokens in a step"
        assert answers(engine_of(long_prefill_token_threshold=tokens), adds(params)) == truth, f"chunks of {tokens}"
    engine = engine_of(blocks=7)
    assert answers(engine, adds(params)) == truth, "a pool of seven blocks"
    assert engine.stats().num_preemptions > 0
    assert answers(engine_of(max_num_seqs=2), adds(params)) == truth, "two at a time"


@pytest.mark.parametrize("around", [4, 8, 16, 32])
def test_cold_equals_warm_for_prompts_around_multiples_of_block_and_chunk(around: int) -> None:
    for length in (around - 1, around, around + 1):
        prompt = prompts_of(1, length, seed=around)[0]
        engine = engine_of(long_prefill_token_threshold=8)
        cold, warm = (answers(engine, [add_of("r", prompt)])[0] for _ in range(2))
        assert cold == warm == continuation(prompt, GREEDY, 1)
        assert engine.stats().prefix_hits == (length - 1) // 4 * 4


limits = st.fixed_dictionaries(
    {
        "max_num_batched_tokens": st.sampled_from([1, 2, 5, 16, 512]),
        "max_num_seqs": st.integers(1, 5),
        "long_prefill_token_threshold": st.sampled_from([1, 3, 128]),
    }
)
some_params = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.0, 0.8, 2.0]),
    top_p=st.sampled_from([1.0, 0.7]),
    top_k=st.sampled_from([0, 5]),
    max_tokens=st.integers(1, 12),
    ignore_eos=st.booleans(),
    stop_token_ids=st.sampled_from([(), (5, 9)]),
)
some_adds = st.lists(
    st.tuples(st.lists(st.integers(1, 3), min_size=1, max_size=20), some_params, st.integers(0, 5)), min_size=1, max_size=7
)


@settings(max_examples=60, deadline=None)
@given(some_adds, limits, st.integers(8, 20), st.data())
def test_whatever_runs_beside_a_request_it_says_what_it_would_say_alone(asked, limits, blocks, data) -> None:
    engine = engine_of(blocks, **limits)
    outputs: dict[str, list[StepOutput]] = {}
    gone = set()
    for i, (prompt, params, seed) in enumerate(asked):
        engine.add(add_of(f"r{i}", prompt, params, seed=seed))
        for output in engine.step() if data.draw(st.booleans()) else ():
            outputs.setdefault(output.request_id, []).append(output)
        if data.draw(st.integers(0, 5)) == 0:
            gone.add(f"r{i}")
            engine.abort(f"r{i}")
    collect(engine, outputs)
    engine.check_idle()
    for i, (prompt, params, seed) in enumerate(asked):
        said, truth = ids_of(outputs.get(f"r{i}", ())), continuation(prompt, params, seed)
        assert said == truth[: len(said)] if f"r{i}" in gone else said == truth


def test_a_finish_has_its_reason() -> None:
    params = SamplingParams(temperature=0, max_tokens=200)
    truth = continuation(PROMPTS[1], params, 1)
    ignoring = SamplingParams(temperature=0, max_tokens=5, ignore_eos=True)
    stopping = SamplingParams(temperature=0, max_tokens=40, ignore_eos=True, stop_token_ids=(truth[2],))
    engine = engine_of()
    for name, chosen in (("eos", params), ("length", ignoring), ("stop", stopping)):
        engine.add(add_of(name, PROMPTS[1], chosen))
    last = {name: outputs[-1] for name, outputs in collect(engine).items()}
    assert truth[-1] == EOS
    assert (last["eos"].finish_reason, last["eos"].stop_token_id, last["eos"].new_ids) == ("stop", EOS, (EOS,))
    assert (last["length"].finish_reason, last["length"].stop_token_id) == ("length", None)
    assert (last["stop"].finish_reason, last["stop"].stop_token_id) == ("stop", truth[2])


def test_without_a_limit_an_answer_goes_to_the_end_of_the_context() -> None:
    engine = engine_of(max_model_len=20)
    params = SamplingParams(temperature=0, ignore_eos=True)
    said = answers(engine, [add_of("r", PROMPTS[0], params)])[0]
    assert said == continuation(PROMPTS[0], params, 1, limit=12) and len(said) == 20 + 1 - 9


def test_a_request_that_can_never_fit_is_refused_with_the_real_limit() -> None:
    engine = engine_of(blocks=4)
    assert engine.max_model_len == 16
    with pytest.raises(ContextOverflow) as refused:
        engine.add(add_of("r", range(1, 10), SamplingParams(max_tokens=9)))
    assert (refused.value.asked, refused.value.limit) == (17, 16)
    assert len(answers(engine, [add_of("r", range(1, 10), SamplingParams(max_tokens=8, ignore_eos=True))])[0]) == 8


@pytest.mark.parametrize("prompt", [(), (-1,), (1, 48)])
def test_what_is_no_prompt_is_refused(prompt) -> None:
    with pytest.raises(InvalidRequest):
        engine_of().add(add_of("r", prompt))


def test_another_salt_shares_no_blocks() -> None:
    engine = engine_of()
    for salt, hits in (("a", 0), ("a", 8), ("b", 0), ("", 0)):
        engine.add(add_of("r", PROMPTS[0], cache_salt=salt))
        assert collect(engine)["r"][-1].num_cached == hits


def test_the_padding_above_the_vocabulary_is_never_drawn_and_has_no_probability() -> None:
    engine = Engine(HashExecutor(), eos_ids={EOS}, max_model_len=100, vocab_size=42)
    params = SamplingParams(temperature=2, max_tokens=60, ignore_eos=True, logprobs=20)
    engine.add(add_of("r", PROMPTS[0], params))
    outputs = collect(engine)["r"]
    ids = ids_of(outputs)
    for index, output in enumerate(outputs):
        logits = logits_after((*PROMPTS[0], *ids[:index]))[:42]
        assert output.new_ids == (sample(logits, params, 1, 9 + index),)
        assert max(i for i, _ in output.logprobs[0].top) < 42
    with pytest.raises(InvalidRequest):
        engine.add(add_of("r", [42]))


def test_log_probabilities_are_those_of_the_raw_distribution() -> None:
    engine = engine_of()
    engine.add(add_of("r", PROMPTS[0], SamplingParams(temperature=0.5, top_k=3, max_tokens=4, logprobs=2, ignore_eos=True)))
    ids = list(PROMPTS[0])
    for output in collect(engine)["r"]:
        logits = logits_after(ids).astype(float)
        raw = logits - math.log(np.exp(logits).sum())
        (entry,) = output.logprobs
        assert entry.token_id == output.new_ids[0] and entry.logprob == pytest.approx(raw[entry.token_id])
        best = sorted(range(len(raw)), key=lambda i: (-raw[i], i))[:2]
        assert [i for i, _ in entry.top] == best and [p for _, p in entry.top] == pytest.approx([raw[i] for i in best])
        ids += output.new_ids
    assert len(ids) == 9 + 4


def test_what_cannot_be_drawn_ends_its_own_request_only() -> None:
    engine = engine_of(executor=HashExecutor(cursed=47))
    engine.add(add_of("cursed", [1, 2, 47]))
    engine.add(add_of("fine", PROMPTS[0]))
    outputs = collect(engine)
    assert (outputs["cursed"][-1].finish_reason, outputs["cursed"][-1].new_ids) == ("error", ())
    assert "NaN" in outputs["cursed"][-1].error
    assert ids_of(outputs["fine"]) == continuation(PROMPTS[0], GREEDY, 1)
    engine.check_idle()
    assert engine.healthy


def test_when_the_executor_breaks_every_request_ends_with_an_error() -> None:
    def on_step(batch) -> None:
        if len(executor.steps) == 3:
            raise MemoryError("kernel")

    executor = HashExecutor(on_step=on_step)
    engine = engine_of(executor=executor, max_num_seqs=2)
    for add in adds(SamplingParams(max_tokens=40, ignore_eos=True)):
        engine.add(add)
    engine.add(add_of("session", PROMPTS[0], remote=True))
    outputs = collect(engine)
    assert {outputs[name][-1].finish_reason for name in outputs} == {"error"} and len(outputs) == 9
    assert all(o.error == "the engine failed: MemoryError" for said in outputs.values() for o in said if o.finish_reason)
    stats = engine.stats()
    assert (stats.healthy, stats.running, stats.waiting, stats.used) == (False, 0, 0, 0)
    with pytest.raises(Unavailable):
        engine.add(add_of("late", PROMPTS[0]))


def test_a_failed_engine_has_nothing_more_to_do_whatever_its_books_say() -> None:
    def on_step(batch) -> None:
        engine._scheduler.waiting.append(engine._scheduler.running[0])  # in two places at once
        raise MemoryError("kernel")

    engine = engine_of(executor=HashExecutor(on_step=on_step))
    engine.add(add_of("a", PROMPTS[0]))
    assert [output.finish_reason for output in engine.step()] == ["error"]
    assert engine._scheduler.has_work
    assert not engine.has_work and engine.step() == []


def test_when_the_books_do_not_balance_at_rest_the_engine_is_unhealthy() -> None:
    engine = engine_of()
    answers(engine, adds(GREEDY))
    engine._scheduler.pool.allocate(1)
    with pytest.raises(EngineFailed, match="used=1"):
        engine.check_idle()
    assert not engine.healthy and not engine.stats().healthy


def test_of_six_requests_on_one_place_those_that_are_aborted_while_they_wait_never_run() -> None:
    engine = engine_of(max_num_seqs=1)
    for add in adds(GREEDY)[:6]:
        engine.add(add)
    outputs = {"r0": engine.step()}
    for name in ("r1", "r2", "r4"):
        engine.abort(name)
    collect(engine, outputs)
    assert set(outputs) == {"r0", "r3", "r5"}
    assert sum(engine.executor.steps) == 3 * 9 + sum(len(ids_of(said)) - 1 for said in outputs.values())


def test_five_hundred_requests_of_all_fates_leave_an_idle_engine() -> None:
    source = random.Random(5)
    engine = engine_of(executor=HashExecutor(41, cursed=47), max_num_batched_tokens=32, max_num_seqs=8)
    alive, ended = [], {}
    for number in range(500):
        prompt = [source.randrange(1, 48) for _ in range(source.randrange(1, 30))]
        params = SamplingParams(
            temperature=source.choice([0, 0.8]),
            max_tokens=source.randrange(1, 12),
            stop_token_ids=tuple(source.sample(range(48), source.randrange(8))),
            logprobs=source.choice([None, 0, 2]),
        )
        engine.add(add_of(f"r{number}", prompt, params, seed=number, remote=source.random() < 0.1))
        alive.append(f"r{number}")
        for output in engine.step():
            if output.finish_reason is not None:
                ended[output.request_id] = output.finish_reason
        if source.random() < 0.3:
            engine.abort(source.choice(alive))
    outputs = collect(engine)
    ended |= {name: said[-1].finish_reason for name, said in outputs.items() if said[-1].finish_reason}
    assert {"stop", "length", "error"} <= set(ended.values())
    for name in alive:
        engine.abort(name)
    stats = engine.stats()
    assert (stats.running, stats.waiting, stats.parked, stats.used) == (0, 0, 0, 0)
    assert stats.free + stats.cached == stats.total and stats.healthy
    engine.check_idle()
    assert answers(engine, [add_of("probe", PROMPTS[0])]) == [continuation(PROMPTS[0], GREEDY, 1)]


def test_nothing_of_a_request_stays_behind() -> None:
    def live() -> int:
        gc.collect()
        return sum(isinstance(thing, Request | Chain | StepOutput) for thing in gc.get_objects())

    engine, source, before = engine_of(blocks=30), random.Random(1), None
    for number in range(600):
        answers(engine, [add_of(f"r{number}", source.sample(range(1, 47), 12), SamplingParams(max_tokens=3, logprobs=2))])
        if number == 100:
            before = live()
    assert live() == before
    assert len(engine._scheduler.pool._blocks) <= 30


def test_choices_of_one_prompt_compute_it_once() -> None:
    engine = engine_of()
    said = answers(engine, [add_of(f"r{i}", PROMPTS[0], DRAWN, seed=i) for i in range(4)])
    assert said == [continuation(PROMPTS[0], DRAWN, i) for i in range(4)]
    assert engine.executor.steps[:2] == [9, 1 + 3 * 1], "the others wait a step, then compute only what no full block holds"
