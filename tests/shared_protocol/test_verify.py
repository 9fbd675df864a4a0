"""Verification under shared noise is plain sampling: tried for every draft of a tiny vocabulary."""

from itertools import product

import numpy as np
import pytest
from hybrid.shared_protocol.sampling import SamplingParams, sample
from hybrid.shared_protocol.verify import Accepted, PrefixHash, cut, prefix_hash, verify
from hypothesis import given
from hypothesis import strategies as st


def target_logits(sequence: tuple[int, ...], vocab: int) -> np.ndarray:
    """A stand-in model: any function of the whole sequence."""
    return np.random.default_rng([vocab, *sequence]).normal(size=vocab).astype(np.float32)


def draw(sequence: tuple[int, ...], vocab: int, params: SamplingParams, seed: int) -> int:
    return sample(target_logits(sequence, vocab), params, seed, len(sequence))


@pytest.mark.parametrize("vocab, k", [(2, 3), (3, 2), (3, 3), (4, 2)])
@pytest.mark.parametrize("params", [SamplingParams(temperature=0.0), SamplingParams(), SamplingParams(temperature=0.8, top_k=2)])
def test_whatever_is_drafted_the_text_is_that_of_plain_sampling(vocab: int, k: int, params: SamplingParams) -> None:
    prompt, seed = (1, 0), 7
    plain = prompt
    while len(plain) < len(prompt) + k + 1:
        plain = (*plain, draw(plain, vocab, params, seed))
    for drafts in product(range(vocab), repeat=k):
        draws = [draw((*prompt, *drafts[:i]), vocab, params, seed) for i in range(k + 1)]
        accepted = verify(drafts, draws)
        emitted = (*drafts[: accepted.n_accepted], accepted.token)
        assert (*prompt, *emitted) == plain[: len(prompt) + len(emitted)]
        agreeing = next((i for i in range(k) if drafts[i] != plain[len(prompt) + i]), k)
        assert accepted.n_accepted == agreeing  # no good draft is thrown away


@given(k=st.integers(0, 6), vocab=st.integers(1, 3), end_ids=st.sets(st.integers(0, 2), max_size=2), room=st.integers(1, 8), data=st.data())
def test_a_finish_cuts_where_plain_decoding_would_have_stopped(
    k: int, vocab: int, end_ids: set[int], room: int, data: st.DataObject
) -> None:
    token = st.integers(0, vocab - 1)
    drafts, draws = (data.draw(st.lists(token, min_size=n, max_size=n)) for n in (k, k + 1))
    accepted = verify(drafts, draws)
    emitted = [*drafts[: accepted.n_accepted], accepted.token]
    expected, reason, stop_id = [], None, None
    for index, token_id in enumerate(emitted):
        expected.append(token_id)
        if token_id in end_ids:
            reason, stop_id = "stop", token_id
        elif index + 1 == room:
            reason = "length"
        if reason:
            break
    ended = cut(accepted, drafts, end_ids=end_ids, room=room)
    kept = [*drafts[: ended.n_accepted], *([] if ended.token is None else [ended.token])]
    assert (kept, ended.finish_reason, ended.stop_token_id) == (expected, reason, stop_id)
    assert ended.n_accepted <= accepted.n_accepted
    assert (ended.token is None) == (reason is not None and len(expected) <= accepted.n_accepted)


def test_an_end_token_that_takes_the_last_place_is_a_stop() -> None:
    assert cut(Accepted(0, 2), [], end_ids={2}, room=1) == Accepted(0, 2, "stop", 2)


def test_an_end_token_beyond_the_room_is_not_seen() -> None:
    assert cut(Accepted(2, 5), [7, 2], end_ids={2}, room=1) == Accepted(1, None, "length", None)


@given(st.lists(st.lists(st.integers(0, 2**24 - 1), max_size=5), max_size=5))
def test_the_prefix_hash_does_not_depend_on_how_the_prefix_grew(parts: list[list[int]]) -> None:
    whole = [i for part in parts for i in part]
    grown = PrefixHash()
    for part in parts:
        grown.extend(part)
        assert grown.digest() == prefix_hash(whole[: grown.length])
    assert grown.length == len(whole)


def test_the_prefix_hash_is_sha256_over_little_endian_words() -> None:
    # sha256 of 01 00 00 00 00 02 00 00, by `printf '\1\0\0\0\0\2\0\0' | sha256sum`
    assert prefix_hash([1, 512]).hex() == "99fb3cc3089a84cd7dab716e7c722ec6"
