"""The drafter against a target that is written out by hand here: text, cache and acceptance."""

from __future__ import annotations

import pytest
from hybrid.edge.corruptor import Corruptor
from hybrid.edge.drafter import Drafter
from hybrid.edge.held_tokens import HeldTokens
from hybrid.shared_protocol.errors import ContextOverflow, ProtocolError
from hybrid.shared_protocol.sampling import SamplingParams, sample
from hybrid.tests.support.toy_runtime import VOCAB, ToyRuntime, toy_logits
from hypothesis import given, settings
from hypothesis import strategies as st

PROMPT = [3, 1, 4, 1, 5]
SEED = 11


def target(prefix: list[int], params: SamplingParams, model: int = 0) -> int:
    return sample(toy_logits(prefix, model), params, SEED, len(prefix))


def plain(params: SamplingParams, count: int, model: int = 0) -> list[int]:
    ids = list(PROMPT)
    for _ in range(count):
        ids.append(target(ids, params, model))
    return ids


def judge(committed: list[int], drafts: tuple[int, ...], params: SamplingParams, model: int = 0) -> tuple[int, int]:
    """Accepted drafts and the target's own next token, one draft after the other."""
    ids = list(committed)
    for n, draft in enumerate(drafts):
        own = target(ids, params, model)
        if own != draft:
            return n, own
        ids.append(own)
    return len(drafts), target(ids, params, model)


@given(
    ks=st.lists(st.integers(0, 8), min_size=1, max_size=8),
    p=st.sampled_from([0.0, 0.3, 1.0]),
    temperature=st.sampled_from([0.0, 0.8]),
    model=st.integers(0, 1),
    corruption=st.integers(0, 99),
)
@settings(deadline=None, max_examples=150)
def test_whatever_is_drafted_the_committed_tokens_are_the_targets_own(
    ks: list[int], p: float, temperature: float, model: int, corruption: int
) -> None:
    params = SamplingParams(temperature=temperature)
    runtime = ToyRuntime(context=128)
    drafter = Drafter(runtime, PROMPT, params, SEED, mutate=Corruptor(p, corruption, VOCAB))
    drafter.prefill()
    for k in ks:
        base = len(drafter.committed)
        drafts = drafter.draft(k)
        assert len(drafts) == k
        assert runtime.held == (drafter.committed + list(drafts))[: base - 1 + k]
        n, token = judge(drafter.committed, drafts, params, model)
        assert drafter.settle(n, token) == base + n + 1
        assert runtime.held == drafter.committed[: base + min(n, k - 1)]
        assert len(drafter.committed) - runtime.length == (2 if n == k else 1)
        if p == 0 and model == 0:
            assert n == k
        if p == 1 and model == 0:
            assert n == 0
    assert drafter.committed == plain(params, len(drafter.committed) - len(PROMPT), model)


def test_each_token_is_computed_once_when_all_drafts_are_accepted() -> None:
    params = SamplingParams(temperature=0.8)
    runtime = ToyRuntime()
    drafter = Drafter(runtime, PROMPT, params, SEED)
    drafter.prefill()
    for _ in range(4):
        drafts = drafter.draft(3)
        drafter.settle(*judge(drafter.committed, drafts, params))
    # all committed tokens but the last two: the last draft was never fed, nor the target's own token
    assert runtime.fed == len(drafter.committed) - 2 == len(PROMPT) + 4 * 4 - 2


def test_a_stale_prefix_is_replaced_and_the_text_goes_on_as_the_target_would() -> None:
    params = SamplingParams(temperature=0.8)
    runtime = ToyRuntime()
    drafter = Drafter(runtime, PROMPT, params, SEED)
    drafter.prefill()
    drafter.draft(2)
    drafter.settle(0, 7)  # the link corrupted the verdict: the target's token was another one
    true = plain(params, 4)
    assert true[len(PROMPT)] != 7
    drafter.draft(3)
    assert drafter.rewind(len(PROMPT), true[len(PROMPT) :]) == len(PROMPT) + 4
    assert runtime.held == true[:-1]
    drafts = drafter.draft(3)
    assert judge(true, drafts, params)[0] == 3


def test_drafting_ends_with_an_end_token() -> None:
    params = SamplingParams(temperature=0.8)
    ids = plain(params, 6)[len(PROMPT) :]
    drafter = Drafter(ToyRuntime(), PROMPT, params, SEED, end_ids=frozenset(ids[2:3]))
    drafter.prefill()
    assert drafter.draft(6) == tuple(ids[: ids.index(ids[2]) + 1])


def test_a_verdict_that_accepts_more_than_was_drafted_is_a_protocol_error() -> None:
    drafter = Drafter(ToyRuntime(), PROMPT, SamplingParams(temperature=0.0), SEED)
    drafter.prefill()
    drafter.draft(2)
    with pytest.raises(ProtocolError, match="3 of 2"):
        drafter.settle(3, 1)


def test_a_correction_outside_what_is_committed_is_a_protocol_error() -> None:
    drafter = Drafter(ToyRuntime(), PROMPT, SamplingParams(temperature=0.0), SEED)
    drafter.prefill()
    for start in (0, 6):
        with pytest.raises(ProtocolError):
            drafter.rewind(start, [1])


def test_the_room_is_the_longest_draft_that_the_device_can_hold() -> None:
    params = SamplingParams(temperature=0.0)
    drafter = Drafter(ToyRuntime(context=8), PROMPT, params, SEED)
    drafter.prefill()
    assert drafter.room == 4
    assert len(drafter.draft(4)) == 4
    drafter.settle(0, 1)
    assert drafter.room == 3
    with pytest.raises(ContextOverflow):
        drafter.draft(4)


def test_a_prompt_that_the_device_cannot_hold_is_refused() -> None:
    drafter = Drafter(ToyRuntime(context=4), PROMPT, SamplingParams(), SEED)
    with pytest.raises(ContextOverflow):
        drafter.prefill()


def test_a_drafter_starts_from_what_the_device_holds_of_the_prompt() -> None:
    runtime = ToyRuntime()
    held = HeldTokens(runtime)
    held.extend([3, 1, 4, 9, 9], rows=0)
    drafter = Drafter(held, PROMPT, SamplingParams(), SEED, held=held.keep_common_prefix(PROMPT))
    fed = runtime.fed
    drafter.prefill()
    assert runtime.fed - fed == 1  # only the 1 before the newest
    assert held.ids == runtime.held == PROMPT[:-1]


def test_a_corruptor_replaces_as_often_as_it_was_told_and_never_by_the_same_id() -> None:
    never, always, sometimes = Corruptor(0, 1, 5), Corruptor(1, 1, 5), Corruptor(0.3, 1, 5)
    assert [never(i, 2) for i in range(50)] == [2] * 50
    replaced = [always(i, 2) for i in range(50)]
    assert set(replaced) == {0, 1, 3, 4}
    changed = sum(sometimes(i, 2) != 2 for i in range(1000))
    assert 250 < changed < 350  # 0.3 of 1,000, three and a half standard deviations
    assert [Corruptor(0.3, 7, 5)(0, 2) for _ in range(9)] == [Corruptor(0.3, 7, 5)(0, 2) for _ in range(9)]
