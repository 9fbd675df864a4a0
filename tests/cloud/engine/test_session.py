"""The engine's side of a session against a model that keeps everything and recomputes everything."""

import hashlib
from dataclasses import dataclass, field

import pytest
from hybrid.cloud.engine.messages import Draft, Refused, Stale, Verdict
from hybrid.cloud.engine.session import Pending, RemoteSession, Verify
from hybrid.shared_protocol.verify import verify
from hypothesis import given, settings
from hypothesis import strategies as st

PROMPT = [1, 2, 0]
VOCAB = 3


def sha(ids: list[int]) -> bytes:
    return hashlib.sha256(b"".join(i.to_bytes(4, "little") for i in ids)).digest()[:16]


def target(sequence: list[int]) -> int:
    """What the target draws after `sequence`: any function of it will do."""
    return hashlib.sha256(bytes(sequence)).digest()[0] % VOCAB


def plain(length: int) -> list[int]:
    sequence = list(PROMPT)
    while len(sequence) < length:
        sequence.append(target(sequence))
    return sequence


def draft(round_: int, assumed: list[int], ids: list[int], **changes: object) -> Draft:
    return Draft(
        **{"request_id": "r", "round": round_, "base_len": len(assumed), "prefix_hash": sha(assumed), "ids": tuple(ids), **changes}
    )


def run(session: RemoteSession, window: Draft) -> Verdict | Stale | Refused:
    """Offer, and play the target where it is asked for."""
    answer = session.offer(window)
    if not isinstance(answer, Verify):
        return answer
    committed = list(session.committed)
    draws = [target([*committed, *answer.ids[:i]]) for i in range(len(answer.ids) + 1)]
    accepted = verify(answer.ids, draws)
    return session.settle(accepted.n_accepted, accepted.token)


def test_a_window_is_verified_and_committed() -> None:
    session = RemoteSession(PROMPT)
    right = plain(6)[3:]
    assert session.offer(draft(1, PROMPT, right)) == Verify(tuple(right))
    assert session.settle(3, 2) == Verdict(round=1, n_accepted=3, token=2, committed_len=7)
    assert session.committed == [*PROMPT, *right, 2]


def test_the_same_round_gets_the_same_verdict_again() -> None:
    session = RemoteSession(PROMPT)
    windows, verdicts = [], []
    for round_ in range(1, 10):
        windows.append(draft(round_, session.committed, [round_ % VOCAB]))
        verdicts.append(run(session, windows[-1]))
    committed = list(session.committed)
    assert [session.offer(window) for window in windows[1:]] == verdicts[1:]
    assert session.committed == committed
    assert session.offer(windows[0]).code == "round_order"  # the ninth back is forgotten


def test_a_round_used_again_with_other_contents_is_a_conflict() -> None:
    session = RemoteSession(PROMPT)
    window = draft(1, PROMPT, [0, 1])
    run(session, window)
    for other in (draft(1, PROMPT, [0, 2]), draft(1, PROMPT, [0, 1], prefix_hash=b"x" * 16), draft(1, PROMPT[:2], [0, 1])):
        assert session.offer(other).code == "round_conflict"


def test_a_window_that_comes_again_while_it_is_verified_waits_for_the_same_answer() -> None:
    session = RemoteSession(PROMPT)
    window = draft(1, PROMPT, [0])
    session.offer(window)
    assert session.offer(window) == Pending()
    assert session.offer(draft(1, PROMPT, [1])).code == "round_conflict"
    assert session.offer(draft(2, PROMPT, [1])).code == "round_order"
    assert session.settle(0, 1).round == 1


def test_rounds_count_up_by_one() -> None:
    session = RemoteSession(PROMPT)
    for round_ in (0, 2, 2**32 - 1):
        assert session.offer(draft(round_, PROMPT, [0])).code == "round_order"
    assert isinstance(session.offer(draft(1, PROMPT, [0])), Verify)


def test_a_wrong_hash_is_refused_and_the_round_may_come_again() -> None:
    session = RemoteSession(PROMPT)
    assert session.offer(draft(1, PROMPT, [0], prefix_hash=sha([9]))).code == "prefix_hash"
    assert session.offer(draft(1, PROMPT, [0])) == Verify((0,))


def test_a_window_beyond_the_committed_tokens_is_refused() -> None:
    session = RemoteSession(PROMPT)
    assert session.offer(draft(1, [*PROMPT, 1], [0])).code == "base_len"


def test_an_overlap_that_agrees_is_skipped_and_counted_as_accepted() -> None:
    session = RemoteSession(PROMPT)
    run(session, draft(1, PROMPT, []))
    run(session, draft(2, session.committed, []))
    known = session.committed[3:]
    assert session.offer(draft(3, PROMPT, [*known, 1, 2])) == Verify((1, 2))
    verdict = session.settle(1, 0)
    assert verdict == Verdict(round=3, n_accepted=3, token=0, committed_len=7)
    assert verdict.committed_len == len(PROMPT) + verdict.n_accepted + 1


def test_an_overlap_that_differs_is_stale_from_the_first_difference() -> None:
    session = RemoteSession(PROMPT)
    run(session, draft(1, PROMPT, plain(5)[3:]))
    committed = list(session.committed)
    wrong = [committed[3], (committed[4] + 1) % VOCAB, 0, 0]
    window = draft(2, PROMPT, wrong)
    assert session.offer(window) == Stale(round=2, start=4, ids=tuple(committed[4:]), committed_len=6)
    assert session.offer(window) == Stale(round=2, start=4, ids=tuple(committed[4:]), committed_len=6)
    assert isinstance(session.offer(draft(3, committed, [])), Verify)


def test_a_device_that_missed_a_verdict_is_told_what_it_lacks() -> None:
    session = RemoteSession(PROMPT)
    run(session, draft(1, PROMPT, plain(5)[3:]))
    stale = session.offer(draft(2, PROMPT, [session.committed[3]]))
    assert stale == Stale(round=2, start=4, ids=tuple(session.committed[4:]), committed_len=6)


def test_a_device_that_took_a_rejected_window_for_accepted_is_set_right() -> None:
    session = RemoteSession(PROMPT)
    right = plain(5)[3:]
    wrong = [right[0], (right[1] + 1) % VOCAB, 0]
    assert run(session, draft(1, PROMPT, wrong)).n_accepted == 1
    assert session.offer(draft(2, [*PROMPT, *wrong], [1])) == Stale(round=2, start=4, ids=(right[1],), committed_len=5)


def test_a_finish_inside_the_accepted_run_commits_no_token_after_it() -> None:
    session = RemoteSession(PROMPT)
    session.offer(draft(1, PROMPT, [0, 1, 2]))
    assert session.settle(2, None) == Verdict(round=1, n_accepted=2, token=None, committed_len=5)
    assert session.committed == [*PROMPT, 0, 1]


# --- against a model -----------------------------------------------------------------------------------------------------------------


@dataclass
class Model:
    """Every answer ever given, and the whole sequence; nothing incremental."""

    committed: list[int] = field(default_factory=lambda: list(PROMPT))
    answered: list[tuple[Draft, Verdict | Stale]] = field(default_factory=list)

    def answer(self, d: Draft) -> Verdict | Stale | str:
        for old, answer in self.answered[-8:]:
            if old.round == d.round:
                return answer if old == d else "round_conflict"
        if d.round != len(self.answered) + 1:
            return "round_order"
        assumed = next((a for a in self.assumable() if len(a) == d.base_len and sha(a) == d.prefix_hash), None)
        if assumed is None:
            return "base_len" if d.base_len > len(self.committed) else "prefix_hash"
        theirs = [*assumed, *d.ids]
        same = 0
        while same < min(len(theirs), len(self.committed)) and theirs[same] == self.committed[same]:
            same += 1
        if same < len(self.committed) or d.base_len > len(self.committed):
            answer = Stale(round=d.round, start=same, ids=tuple(self.committed[same:]), committed_len=len(self.committed))
        else:
            while same < len(theirs) and theirs[same] == target(theirs[:same]):
                same += 1
            token = target(theirs[:same])
            self.committed = [*theirs[:same], token]
            answer = Verdict(round=d.round, n_accepted=same - d.base_len, token=token, committed_len=same + 1)
        self.answered.append((d, answer))
        return answer

    def assumable(self) -> list[list[int]]:
        """Prefixes the cloud can know of: its own, and its own followed by a kept window."""
        own = [self.committed[:n] for n in range(len(self.committed) + 1)]
        kept = [d for d, _ in self.answered[-8:] if d.base_len <= len(self.committed)]
        return own + [[*self.committed[: d.base_len], *d.ids[:n]] for d in kept for n in range(1, len(d.ids) + 1)]


@settings(max_examples=150)
@given(data=st.data())
def test_every_answer_is_that_of_the_model(data: st.DataObject) -> None:
    session, model, sent = RemoteSession(PROMPT), Model(), []
    for _ in range(data.draw(st.integers(1, 14))):
        kind = data.draw(st.sampled_from(["next", "next", "next", "repeat", "odd round", "wrong hash", "optimistic"]))
        length = data.draw(st.integers(max(0, len(model.committed) - 4), len(model.committed) + 1))
        assumed = [*model.committed, 0][:length] if data.draw(st.booleans()) else list(model.committed)
        right = plain(len(model.committed) + 6)[len(assumed) :]
        ids = [(t + (data.draw(st.integers(0, 9)) == 0)) % VOCAB for t in right[: data.draw(st.integers(0, 5))]]
        window = draft(len(model.answered) + 1, assumed, ids)
        if kind == "repeat" and sent:
            window = data.draw(st.sampled_from(sent))
            if data.draw(st.booleans()):
                window = draft(window.round, model.committed[: window.base_len], [0, *window.ids])
        elif kind == "odd round":
            window = draft(data.draw(st.integers(0, 20)), assumed, ids)
        elif kind == "wrong hash":
            window = draft(window.round, assumed, ids, prefix_hash=b"?" * 16)
        elif kind == "optimistic" and sent:
            last = sent[-1]
            window = draft(window.round, [*model.committed[: last.base_len], *last.ids], ids)
        sent.append(window)
        before = list(session.committed)
        answer, expected = run(session, window), model.answer(window)
        assert (answer.code if isinstance(answer, Refused) else answer) == expected
        assert session.committed == model.committed == plain(len(session.committed))
        if not isinstance(answer, Verdict):
            assert session.committed == before


@given(data=st.data())
def test_a_device_that_follows_the_answers_ends_with_the_text_of_plain_decoding(data: st.DataObject) -> None:
    session, device, round_ = RemoteSession(PROMPT), list(PROMPT), 1
    while len(device) < 30:
        ids = data.draw(st.lists(st.integers(0, VOCAB - 1), max_size=4))
        window = draft(round_, device, ids)
        answer = run(session, window)
        if data.draw(st.booleans()):
            answer = session.offer(window)  # the answer was lost, the window is sent again
        assert isinstance(answer, Verdict)
        device = [*device, *ids[: answer.n_accepted], answer.token]
        assert len(device) == answer.committed_len
        round_ += 1
    assert device == plain(len(device)) == session.committed


def test_a_session_needs_a_prompt() -> None:
    with pytest.raises(AssertionError):
        RemoteSession([])
