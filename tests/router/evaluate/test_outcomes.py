"""A file of outcomes is read whole or refused with the line that is wrong; what a prompt says never shows."""

import json
from pathlib import Path

import pytest
from hybrid.router.evaluate.outcomes import Outcome, read_outcomes
from hybrid.router.evaluate.rows import group_of, read_rows
from hybrid.shared_protocol.errors import InvalidRequest, NotFound
from hybrid.tests.support.routing_data import GSM8K, MIXED

SECRET = "the swordfish sleeps at noon"


def written(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


def refusal(path: Path, *rows: object) -> str:
    with pytest.raises(InvalidRequest) as caught:
        read_outcomes(written(path, *rows))
    assert SECRET not in f"{caught.value} {caught.value.__context__!r} {caught.value.__cause__!r}"
    return str(caught.value)


def test_every_name_of_the_scores_is_taken(tmp_path: Path) -> None:
    file = written(
        tmp_path / "a.jsonl",
        {"id": "one", "prompt": "a", "weak": 0, "strong": 1, "else": "is left alone"},
        "",
        {"id": 7, "prompt": "b", "weak_correct": True, "strong_correct": False},
        {"prompt": "c", "weak_score": 0.25, "strong_score": 0.5, "group": "g"},
    )
    found = read_outcomes(file)
    assert [(row.id, row.prompt, row.weak, row.strong, row.gain) for row in found] == [
        ("one", "a", 0, 1, 1),
        ("7", "b", 1, 0, -1),
        ("4", "c", 0.25, 0.5, 0.25),
    ]
    assert found[2].group == "g" and found[0].group == group_of("a")


def test_a_conversation_is_scored_by_its_user_turns(tmp_path: Path) -> None:
    turns = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Prove it."}]
    turns += [{"role": "assistant", "content": "No."}, {"role": "user", "content": [{"type": "text", "text": "continue"}]}]
    row = read_rows(written(tmp_path / "a.jsonl", {"messages": turns, "max_tokens": 9, "user": "ann", "tools": [{"name": "f"}]}))[0]
    assert row.prompt == "Prove it.\n\ncontinue"
    assert (len(row.request.messages), row.request.max_tokens, row.request.user, len(row.request.tools)) == (4, 9, "ann", 1)


def test_comma_separated_values_are_taken_too(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('id,prompt,weak,strong,time,max_tokens\nx,"one, two\nthree",true,0.5,2026-01-02T03:04:05Z,20\ny,"four",0,1,,\n')
    one, two = read_rows(file)
    assert (one.id, one.prompt, one.weak, one.strong, one.time) == ("x", "one, two\nthree", 1.0, 0.5, 1767323045.0)
    assert one.request.max_tokens == 20 and two.time is None and two.request.max_tokens is None


@pytest.mark.parametrize(
    ("time", "seconds"),
    [(5, 5.0), ("5.5", 5.5), ("1970-01-02", 86400.0), ("1970-01-01T02:00+02:00", 0.0), ("1970-01-01 00:00:01.5Z", 1.5)],
)
def test_a_time_is_seconds_or_iso_8601(tmp_path: Path, time: object, seconds: float) -> None:
    assert read_rows(written(tmp_path / "a.jsonl", {"prompt": "a", "timestamp": time}))[0].time == seconds


def test_rows_without_scores_are_rows_but_no_outcomes(tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", {"prompt": "a", "weak": 1, "strong": 1}, {"prompt": "b"})
    assert [row.weak for row in read_rows(file)] == [1.0, None]
    with pytest.raises(InvalidRequest, match=r"a\.jsonl:2: no scores"):
        read_outcomes(file)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"prompt": SECRET, "weak": 1}, "strong is missing"),
        ({"prompt": SECRET, "weak": 1.5, "strong": 1}, "weak must be a boolean or a number from 0 to 1"),
        ({"prompt": SECRET, "weak": "often", "strong": 1}, "weak must be"),
        ({"prompt": SECRET, "weak": 1, "strong": -0.1}, "strong must be"),
        ('{"prompt": "the swordfish sleeps at noon", "weak": NaN, "strong": 1}', "no JSON"),
        ('{"prompt": "the swordfish sleeps at noon"', "no JSON"),
        ({"prompt": SECRET, "weak": 1, "weak_correct": 1, "strong": 1}, "weak and weak_correct mean the same"),
        ({"weak": 1, "strong": 1}, "either prompt or messages"),
        ({"prompt": SECRET, "messages": [], "weak": 1, "strong": 1}, "either prompt or messages"),
        ({"prompt": [SECRET], "weak": 1, "strong": 1}, "prompt must be a string, found list"),
        ({"prompt": " \n", "weak": 1, "strong": 1}, "the user says nothing"),
        ({"messages": [{"role": "user", "content": 3}], "weak": 1, "strong": 1}, "messages.0.content"),
        ({"prompt": SECRET, "id": "", "weak": 1, "strong": 1}, "id must be a string"),
        ({"prompt": SECRET, "id": "first", "weak": 1, "strong": 1}, "the id of line 1 again"),
        ({"prompt": SECRET, "time": "noon", "weak": 1, "strong": 1}, "time must be"),
        ({"prompt": SECRET, "time": "2026-02-30", "weak": 1, "strong": 1}, "time must be"),
        ({"prompt": SECRET, "time": 1767323045000, "weak": 1, "strong": 1}, "time must be"),  # milliseconds
        ({"prompt": SECRET, "time": 1e300, "weak": 1, "strong": 1}, "time must be"),
        ([1], "a row must be an object, found list"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_a_bad_row_is_named_by_its_line(tmp_path: Path, row: object, said: str) -> None:
    message = refusal(tmp_path / "bad.jsonl", {"id": "first", "prompt": "x", "weak": 0, "strong": 0}, row)
    assert message.startswith("bad.jsonl:2: ") and said in message


def test_a_file_that_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_outcomes(tmp_path / "none.jsonl")
    assert "holds no rows" in refusal(tmp_path / "empty.jsonl", "")
    (tmp_path / "latin.jsonl").write_bytes(b'{"prompt": "the swordfish sleeps at noon \xff"}')
    with pytest.raises(InvalidRequest, match="not UTF-8") as caught:
        read_rows(tmp_path / "latin.jsonl")
    assert caught.value.__context__ is None


def test_equal_prompts_are_one_group_and_no_prompt_shows() -> None:
    one, two = Outcome("1", f"{SECRET}?", 0, 1), Outcome("2", f"  {SECRET.upper()}?\n", 1, 1)
    assert one.group == two.group != Outcome("3", SECRET, 0, 1).group
    assert SECRET not in repr(one)


def test_the_public_sets_are_read_as_they_are(gsm8k: Path, mixed: Path) -> None:
    assert (len(read_outcomes(gsm8k)), len(read_outcomes(mixed))) == (1319, 5608) == (GSM8K.rows, MIXED.rows)
