import asyncio
import math
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing

import numpy as np
import pytest
from hybrid import LLM, SamplingParams
from hybrid.cloud.engine.engine import Engine
from hybrid.cloud.engine.frontend import Frontend
from hybrid.cloud.engine.open_engine import default_blocks, open_engine
from hybrid.cloud.engine.scheduler import Limits
from hybrid.cloud.engine.thread_client import ThreadEngineClient
from hybrid.npu_backends.step import StepBatch
from hybrid.shared_protocol.errors import ConfigError, ContextOverflow, InvalidRequest, Unavailable
from hybrid.shared_protocol.noise import child_seed
from hybrid.shared_protocol.sampling import sample

TEXTS = [
    "The capital of France is",
    "Once upon a time, in a village by the sea, there lived a clockmaker who had never been late in all his life, until one morning",
    "1, 2, 3, 4,",
    "def area(radius):\n",
]
GREEDY = SamplingParams(temperature=0, max_tokens=12, seed=3)
DRAWN = SamplingParams(temperature=0.8, max_tokens=12, seed=3)


@pytest.fixture(scope="module")
def llm(smollm2):
    with LLM(smollm2, kv_blocks=96) as opened:
        yield opened


@pytest.fixture(scope="module")
def tiny(tiny_llama):
    with LLM(tiny_llama, kv_blocks=200) as opened:
        yield opened


def cold(llm: LLM, **limits: int) -> LLM:
    """The same kernels and weights behind an engine of its own, which has cached nothing."""
    other = object.__new__(LLM)
    other.__dict__ |= llm.__dict__
    eos_ids, length = llm.model.tokenizer.eos_ids, llm.engine.max_model_len
    other.engine = Engine(llm.engine.executor, eos_ids=eos_ids, max_model_len=length, limits=Limits(**limits))
    return other


def plain(llm: LLM, text: str, params: SamplingParams, seed: int | None = None) -> tuple[int, ...]:
    """The prompt in one step, then token by token, straight on the executor."""
    executor, prompt = llm.engine.executor, llm.model.tokenizer.encode(text)
    ids, fed = list(prompt), 0
    table = np.arange(1, executor.num_blocks, dtype=np.int32)[None, :]
    while len(ids) - len(prompt) < params.max_tokens and (len(ids) == len(prompt) or ids[-1] not in llm.model.tokenizer.eos_ids):
        new = np.array(ids[fed:], np.int32)
        positions = np.arange(fed, len(ids), dtype=np.int32)
        ends = np.array([0, len(new)], np.int32)
        logits = executor.step(StepBatch(new, positions, ends, table, np.array([len(new) - 1], np.int32)))
        fed = len(ids)
        ids.append(sample(logits[0], params, params.seed if seed is None else seed, len(ids)))
    return tuple(ids[len(prompt) :])


def ids_of(generations) -> list[tuple[int, ...]]:
    return [generation.token_ids for generation in generations]


@pytest.mark.parametrize("params", [GREEDY, DRAWN], ids=["greedy", "drawn"])
def test_on_the_real_model_no_schedule_changes_a_token(llm, smollm2, params) -> None:
    truth = [plain(llm, text, params) for text in TEXTS]
    assert len(set(truth)) == len(truth)
    batched = cold(llm)
    assert ids_of(batched.generate(TEXTS, params)) == truth, "batched"
    warm = batched.generate(TEXTS, params)
    assert ids_of(warm) == truth and warm[1].num_cached == 16, "warm"
    assert [cold(llm).generate(text, params)[0].token_ids for text in TEXTS[:2]] == truth[:2], "alone"
    assert ids_of(cold(llm, max_num_batched_tokens=1).generate(TEXTS[:2], params)) == truth[:2], "one token a step"
    for tokens in (7, 64):
        assert ids_of(cold(llm, max_num_batched_tokens=tokens).generate(TEXTS, params)) == truth, f"{tokens} tokens a step"
    assert ids_of(cold(llm, long_prefill_token_threshold=7).generate(TEXTS, params)) == truth, "chunks of 7"
    with LLM(smollm2, kv_blocks=5) as squeezed:
        assert ids_of(squeezed.generate(TEXTS, params)) == truth and squeezed.engine.stats().num_preemptions, "pre-empted"


def test_one_thread_and_two_give_the_same_tokens(llm, smollm2) -> None:
    with LLM(smollm2, kv_blocks=40, threads=1) as one, LLM(smollm2, kv_blocks=40, threads=2) as two:
        assert ids_of(one.generate(TEXTS, DRAWN)) == ids_of(two.generate(TEXTS, DRAWN)) == ids_of(cold(llm).generate(TEXTS, DRAWN))


def test_the_real_model_says_what_one_expects(llm) -> None:
    (answer,) = llm.generate("The capital of France is", SamplingParams(temperature=0, max_tokens=2))
    assert (answer.text, answer.finish_reason, answer.num_prompt) == (" Paris.", "length", 5)


def test_a_chat_is_rendered_answered_and_ended_by_the_model(llm) -> None:
    (answer,) = llm.chat([{"role": "user", "content": "Say hello."}], SamplingParams(temperature=0, max_tokens=60))
    assert answer.finish_reason == "stop" and answer.text and "<|im_end|>" not in answer.text
    assert answer.token_ids[-1] in llm.model.tokenizer.eos_ids


@pytest.mark.parametrize("messages", ["Say hello.", ["Say hello."], {"role": "user", "content": "Say hello."}, [[["Say"]]]])
def test_a_chat_of_plain_texts_is_refused_with_what_to_do(tiny, messages) -> None:
    with pytest.raises(InvalidRequest, match="list of messages"):
        tiny.chat(messages)


@pytest.mark.parametrize("around", [16, 48, 128, 384])
def test_cold_equals_warm_around_multiples_of_block_chunk_and_batch(tiny, around: int) -> None:
    source = np.random.default_rng(around)
    for length in (around - 1, around, around + 1):
        prompt = source.integers(3, 320, length).tolist()
        engine = cold(tiny, max_num_batched_tokens=96, long_prefill_token_threshold=48)
        first, again = (engine.generate([prompt], DRAWN)[0] for _ in range(2))
        assert first.token_ids == again.token_ids
        assert (first.num_cached, again.num_cached) == (0, (length - 1) // 16 * 16)


def test_the_numpy_reference_keeps_the_same_promise_within_itself(tiny_llama) -> None:
    params = SamplingParams(temperature=0.8, max_tokens=6, seed=2)
    with LLM(tiny_llama, backend="reference", kv_blocks=40) as llm:
        assert llm.engine.executor.kernel_id.startswith("numpy")
        truth = [plain(llm, text, params) for text in TEXTS]
        batched = cold(llm)
        assert ids_of(batched.generate(TEXTS, params)) == ids_of(batched.generate(TEXTS, params)) == truth
        assert ids_of(cold(llm, max_num_batched_tokens=7).generate(TEXTS, params)) == truth


def test_choices_draw_with_children_of_the_seed_and_share_the_prompt(tiny) -> None:
    text = "there would be time for this and that " * 2
    params = SamplingParams(n=3, seed=11, max_tokens=8, ignore_eos=True)
    choices = cold(tiny).generate(text, params)
    assert ids_of(choices) == [plain(tiny, text, params, child_seed(11, i)) for i in range(3)]
    assert [(c.index, c.seed) for c in choices] == [(0, 11), (1, 11), (2, 11)]
    assert choices[0].num_cached == 0 and choices[1].num_cached == choices[2].num_cached > 0


def test_parameters_may_be_one_for_all_or_one_each(tiny) -> None:
    pair = [SamplingParams(temperature=0, max_tokens=2, ignore_eos=True), SamplingParams(temperature=0, max_tokens=5, ignore_eos=True)]
    assert [len(g.token_ids) for g in tiny.generate(["the", "and"], pair)] == [2, 5]
    assert [len(g.token_ids) for g in tiny.generate([[5, 6], [7]], pair[0])] == [2, 2]
    assert len(tiny.generate([5, 6], pair[1])[0].token_ids) == 5
    assert tiny.generate([], pair[0]) == []
    with pytest.raises(InvalidRequest):
        tiny.generate(["the"], pair)


def test_an_unseeded_answer_can_be_had_again_with_the_seed_it_reports(tiny) -> None:
    (first,) = tiny.generate("the", SamplingParams(max_tokens=12))
    (again,) = tiny.generate("the", SamplingParams(max_tokens=12, seed=first.seed))
    assert first.token_ids == again.token_ids


def test_a_stop_string_ends_the_text_before_it_and_the_engine_is_idle_after(tiny) -> None:
    (whole,) = tiny.generate("the", SamplingParams(temperature=0, max_tokens=24, ignore_eos=True))
    stop = whole.text[3:6]
    (cut,) = tiny.generate("the", SamplingParams(temperature=0, max_tokens=24, ignore_eos=True, stop=(stop,)))
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert (cut.finish_reason, cut.stop_reason) == ("stop", stop)
    assert cut.token_ids == whole.token_ids[: len(cut.token_ids)]
    tiny.engine.check_idle()
    assert tiny.engine.stats().used == 0


def test_log_probabilities_sum_up_and_their_tokens_are_the_text(llm) -> None:
    (answer,) = llm.generate("The capital of France is", SamplingParams(temperature=0, max_tokens=6, logprobs=3))
    assert "".join(entry.token for entry in answer.logprobs) == answer.text
    for entry in answer.logprobs:
        assert entry.top_logprobs[0].logprob == entry.logprob and len(entry.top_logprobs) == 3
        assert sum(math.exp(top.logprob) for top in entry.top_logprobs) <= 1


def test_without_a_limit_an_answer_ends_at_the_end_of_the_context(tiny_llama) -> None:
    with LLM(tiny_llama, max_model_len=24) as llm:
        (answer,) = llm.generate([[5] * 10], SamplingParams(ignore_eos=True))
        assert (len(answer.token_ids), answer.finish_reason) == (15, "length")
        assert llm.generate([[5] * 24], SamplingParams(temperature=0))[0].num_prompt == 24
        with pytest.raises(ContextOverflow) as refused:
            llm.generate([[5] * 25], SamplingParams())
        assert (refused.value.asked, refused.value.limit) == (25, 24)


def test_one_bad_prompt_refuses_the_whole_call_and_nothing_stays_queued(tiny) -> None:
    for bad in ([], [400], [-1]):
        with pytest.raises(InvalidRequest):
            tiny.generate([[5, 6], bad], GREEDY)
    assert not tiny.engine.has_work


def test_an_interrupted_call_leaves_an_idle_engine(tiny, monkeypatch) -> None:
    steps = []

    def step():
        steps.append(1)
        if len(steps) == 3:
            raise KeyboardInterrupt
        return through()

    through = tiny.engine.step
    monkeypatch.setattr(tiny.engine, "step", step)
    with pytest.raises(KeyboardInterrupt):
        tiny.generate(["the", "and"], SamplingParams(max_tokens=50, ignore_eos=True))
    tiny.engine.check_idle()
    assert not tiny.engine.has_work


def test_an_interrupt_in_the_middle_of_a_step_waits_for_its_end_and_the_next_call_finds_everything_in_order(tiny, monkeypatch) -> None:
    truth = tiny.generate(TEXTS, GREEDY)
    through, whole = tiny.engine.executor.step, []

    def step(batch: StepBatch) -> np.ndarray:
        signal.raise_signal(signal.SIGINT)
        logits = through(batch)
        whole.append(len(batch.token_ids))
        return logits

    monkeypatch.setattr(tiny.engine.executor, "step", step)
    for calls in range(1, 4):
        with pytest.raises(KeyboardInterrupt):
            tiny.generate(TEXTS, GREEDY)
        assert len(whole) == calls
        tiny.engine.check_idle()
    monkeypatch.undo()
    assert ids_of(tiny.generate(TEXTS, GREEDY)) == ids_of(truth)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_threads_take_turns(tiny) -> None:
    truth = ids_of(tiny.generate(TEXTS, DRAWN))
    with ThreadPoolExecutor(4) as pool:
        assert [ids_of(answers) for answers in pool.map(lambda _: tiny.generate(TEXTS, DRAWN), range(8))] == [truth] * 8


def test_ids_may_be_any_integers_and_nothing_else(tiny) -> None:
    truth = ids_of(tiny.generate([[5, 6, 7]], GREEDY))
    for prompts in ((5, 6, 7), np.array([5, 6, 7]), [np.array([5, 6, 7], np.int32)], np.array([[5, 6, 7]]), (ids for ids in [(5, 6, 7)])):
        assert ids_of(tiny.generate(prompts, GREEDY)) == truth
    for wrong in (None, 5, b"abc", {"a": 1}, [None], [[1.5]], [["a"]], [{"a": 1}], np.array([0.5])):
        with pytest.raises(InvalidRequest, match="token ids"):
            tiny.generate(wrong, GREEDY)


def test_a_closed_model_says_so(tiny_llama) -> None:
    llm = LLM(tiny_llama, kv_blocks=4)
    llm.close()
    with pytest.raises(Unavailable, match="closed"):
        llm.generate("the")


def test_options_that_cannot_work_are_refused(tiny_llama) -> None:
    zero = ("max_num_seqs", "max_num_batched_tokens", "long_prefill_token_threshold", "kv_blocks", "block_size", "max_model_len")
    large = ({name: 2**62} for name in zero)
    for wrong in ({"max_model_len": 513}, {"max_model_len": 1.5}, {"threads": 2.0}, *({name: 0} for name in zero), *large):
        with pytest.raises(ConfigError):
            open_engine(tiny_llama, **wrong)
    with pytest.raises(TypeError, match="kv_block"):
        open_engine(tiny_llama, kv_block=3)


def test_the_cache_takes_four_contexts_or_512_mib_but_always_one(smollm2, tiny_llama) -> None:
    assert default_blocks(tiny_llama.architecture, 512, 16) == 4 * 32
    assert default_blocks(smollm2.architecture, 8192, 16) == (512 << 20) // (16 * 30 * 3 * 64 * 2 * 2)
    assert default_blocks(smollm2.architecture, 8192 * 8, 16) == 8192 * 8 // 16


async def test_many_askers_over_a_thread_get_what_a_call_gives_and_leavers_leave_nothing(tiny) -> None:
    params = SamplingParams(n=3, seed=5, max_tokens=12, ignore_eos=True, stop=("q",))
    texts = ["the", "and there would be time for this", "what about"]
    truth = [(g.text, g.finish_reason) for g in cold(tiny).generate(texts, params)]
    client = ThreadEngineClient(cold(tiny, max_num_seqs=4).engine)
    client._engine.close = lambda: None  # the executor is shared with other tests
    frontend = Frontend(tiny.model, client)

    async def ask(number: int) -> list[tuple[str, str]]:
        said = {i: ["", ""] for i in range(3)}
        async for chunk in frontend.generate(await frontend.tokenize(texts[number]), params, f"r{number}"):
            said[chunk.index] = [said[chunk.index][0] + chunk.text, chunk.finish_reason]
        return [tuple(pair) for pair in said.values()]

    async def leave() -> None:
        async with aclosing(frontend.generate([5, 6, 7], SamplingParams(n=4, max_tokens=400, ignore_eos=True), "gone")) as answer:
            await anext(answer)

    *said, _ = await asyncio.gather(*map(ask, range(3)), leave())
    assert [pair for pairs in said for pair in pairs] == truth
    await client.drain()
    await client.close()
    stats = client.stats()
    assert (stats.running, stats.waiting, stats.used, stats.free + stats.cached) == (0, 0, 0, stats.total)
