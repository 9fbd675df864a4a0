"""One mapping per conversation: equal values have one placeholder, others never see it, and it ends with the conversation."""

from __future__ import annotations

import asyncio
import copy
import pickle
import re
import threading
import unicodedata

import pytest
from hybrid.router.redact import mapping as module
from hybrid.router.redact.mapping import RedactionFailed, RedactionMapping
from hybrid.router.redact.placeholder import ALPHABET, SUFFIX, label_of
from hybrid.router.redact.restore import restored
from hybrid.tests.support.redacting import mapping, redacted


def test_the_same_value_has_one_placeholder_and_another_value_another() -> None:
    into = mapping()
    jane, bob = into.placeholder("email", "jane@example.com"), into.placeholder("email", "bob@example.com")
    assert into.placeholder("email", "jane@example.com") == jane != bob
    assert into.placeholder("name", "jane@example.com") == jane
    assert (jane.number, bob.number, into.placeholder("phone", "555 0100 200").number) == (1, 2, 1)


def test_equal_to_unicode_is_equal() -> None:
    into = mapping()
    composed, parts = "jos\u00e9@example.com", unicodedata.normalize("NFD", "jos\u00e9@example.com")
    assert composed != parts
    assert into.placeholder("email", composed) == into.placeholder("email", parts)
    assert list(into.values().values()) == [composed]


def test_a_placeholder_tells_its_kind_and_cannot_be_guessed() -> None:
    texts = {RedactionMapping().placeholder("email", "jane@example.com").text for _ in range(50)}
    assert len(texts) == 50
    assert all(re.fullmatch(rf"\[EMAIL_1_[{ALPHABET}]{{{SUFFIX}}}\]", text) for text in texts)
    labels = {"email": "EMAIL", "us_ssn": "USSSN", "gr\u00f6\u00dfe": "GRSSE", "123": "VALUE", "x" * 40: "X" * 12}
    assert {kind: label_of(kind) for kind in labels} == labels


def test_two_kinds_with_one_label_share_their_numbers() -> None:
    into = mapping()
    assert [into.placeholder(kind, kind).number for kind in ("us_ssn", "us-ssn")] == [1, 2]


def test_nothing_of_it_is_shown_or_written() -> None:
    into = mapping()
    into.placeholder("email", "jane@example.com")
    assert repr(into) == str(into) == "RedactionMapping(1 values)"
    for write in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            write(into)


def test_every_dry_run_shows_the_same() -> None:
    one, two = (RedactionMapping.of_a_dry_run().placeholder("email", "jane@example.com") for _ in range(2))
    assert one == two != RedactionMapping().placeholder("email", "jane@example.com")


def test_it_takes_no_more_than_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_VALUES", 2)
    into = mapping()
    first = into.placeholder("email", "a@example.com")
    into.placeholder("email", "b@example.com")
    with pytest.raises(RedactionFailed) as failed:
        into.placeholder("email", "c@example.com")
    assert "example" not in str(failed.value)
    assert into.placeholder("email", "a@example.com") == first
    with pytest.raises(RedactionFailed):
        mapping().placeholder("email", "a" * (module.MAX_CHARACTERS + 1))


def test_what_is_forgotten_is_gone_and_nothing_comes_after_it() -> None:
    into = mapping()
    sent = redacted("to jane@example.com", into)
    into.forget()
    assert (into.entries(), dict(into.values())) == ([], {})
    assert "jane" not in str(vars(into))
    assert restored(sent, into.values()) == sent
    with pytest.raises(RedactionFailed):
        into.placeholder("email", "jane@example.com")


def conversation(number: int, turns: int = 40) -> list[tuple[str, str, RedactionMapping]]:
    """(text, what was sent, mapping) of every turn."""
    into = RedactionMapping()
    texts = [f"{number}.{turn}@example.com and user{number}@example.com" for turn in range(turns)]
    return [(text, redacted(text, into), into) for text in texts]


def check(talks: list[list[tuple[str, str, RedactionMapping]]]) -> None:
    for number, talk in enumerate(talks):
        for other, foreign in enumerate(talks):
            values = foreign[0][2].values()
            assert [restored(sent, values) for _, sent, _ in talk] == [text if number == other else sent for text, sent, _ in talk]


def test_conversations_in_several_threads_never_mix() -> None:
    talks: list[list[tuple[str, str, RedactionMapping]]] = [[] for _ in range(4)]
    barrier = threading.Barrier(4)

    def talk(number: int) -> None:
        barrier.wait()
        talks[number] = conversation(number)

    threads = [threading.Thread(target=talk, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(talks)


async def test_neither_do_those_of_one_event_loop() -> None:
    async def talk(number: int) -> list[tuple[str, str, RedactionMapping]]:
        into, turns = RedactionMapping(), []
        for turn in range(20):
            text = f"{number}.{turn}@example.com and user@example.com"
            turns.append((text, redacted(text, into), into))
            await asyncio.sleep(0)
        return turns

    check(list(await asyncio.gather(*(talk(number) for number in range(4)))))


def test_threads_of_one_conversation_agree_on_every_placeholder() -> None:
    into = RedactionMapping()
    made: list[list[str]] = [[] for _ in range(4)]
    barrier = threading.Barrier(4)

    def fill(number: int) -> None:
        barrier.wait()
        made[number] = [into.placeholder("email", f"{at}@example.com").text for at in range(200)]

    threads = [threading.Thread(target=fill, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made[0] == made[1] == made[2] == made[3]
    assert len(set(made[0])) == len(into.entries()) == 200
