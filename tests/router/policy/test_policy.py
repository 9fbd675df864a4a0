"""A policy file is refused at its first mistake, by line and key; what it leaves out keeps its default."""

import re
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol.errors import ConfigError

DEFAULT = (files("hybrid.router.policy") / "default.toml").read_text(encoding="utf-8")


def refused(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        Policy.parse(text, "ours.toml")
    assert caught.value.exit_code == 5
    return caught.value


def test_structs_and_default_file_know_the_same_keys() -> None:
    for table, values in msgspec.to_builtins(Policy.default()).items():
        if table in ("rule", "version"):  # every rule is a policy's own
            continue
        section = DEFAULT.split(f"[{table}]\n")[1].split("\n[")[0]
        assert set(re.findall(r"(?m)^(\w+) = ", section)) == set(values)


def test_every_key_of_the_default_file_is_commented() -> None:
    above = False
    for line in DEFAULT.splitlines():
        if re.match(r"\w+ = ", line):
            assert above or "#" in line, line
        above = line.startswith("#") or (above and bool(re.match(r"\w+ = ", line)))


def test_a_file_names_only_what_it_changes() -> None:
    policy = Policy.parse('[speculation]\nmode = "always"\n[quota]\nrefill_per_s = 1')
    assert policy.speculation.mode == "always"
    assert policy.quota.refill_per_s == 1.0
    assert policy.privacy == Policy.default().privacy
    assert policy.speculation.max_draft == Policy.default().speculation.max_draft


def test_equal_values_have_equal_hashes_however_they_are_written() -> None:
    assert Policy.parse("").hash == Policy.default().hash == Policy.parse(DEFAULT).hash
    one = Policy.parse("[complexity]\ncascade_from = 0.2\nhard_from = 0.9")
    other = Policy.parse("# ours\ncomplexity = { hard_from = 0.90, cascade_from = 0.20 }")
    assert one.hash == other.hash != Policy.default().hash
    assert re.fullmatch("[0-9a-f]{16}", one.hash)


def test_a_policy_cannot_change() -> None:
    with pytest.raises(AttributeError):
        Policy.default().quota = None  # type: ignore[misc, assignment]
    with pytest.raises(AttributeError):
        Policy.default().privacy.email = "public"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("[privacy]\n\nemial = 'public'", 3, "privacy.emial"),
        ("[privacy]\nemail = 'secret'", 2, "privacy.email"),
        ("[privacy]\nemail = true", 2, "privacy.email"),
        ("[privacy]\nunreadable = 'public'", 2, "privacy.unreadable"),
        ("[privacy]\ntopic_words = 'x'", 2, "privacy.topic_words"),
        ("[privacy]\ntopic_words = ['Upper']", 2, "privacy.topic_words"),
        ("[privacy]\ntopic_words = ['']", 2, "privacy.topic_words"),
        ("[privacy]\ntopic_words = [' padded']", 2, "privacy.topic_words"),
        ("[privacy]\ntopic_words = ['Ärztin']", 2, "privacy.topic_words"),
        ("[privacy]\nmore_topic_words = ['Ärztin']", 2, "privacy.more_topic_words"),
        ('[privacy]\ntopic_words = ["word\\n"]', 2, "privacy.topic_words"),
        ("[privacy]\ntopic_words = ['one two three four five']", 2, "privacy.topic_words"),
        ("[privacy]\nmax_characters = 0", 2, "privacy.max_characters"),
        ("[complexity]\nhard_from = nan", 2, "complexity.hard_from"),
        ("[complexity]\nhard_from = 1.5", 2, "complexity.hard_from"),
        ("[complexity]\nhard_from = -0.1", 2, "complexity.hard_from"),
        ("[complexity]\nhard_from = inf", 2, "complexity.hard_from"),
        ("[complexity]\nhard_from = '0.5'", 2, "complexity.hard_from"),
        ("[complexity]\nhard_from = true", 2, "complexity.hard_from"),
        ("# x\n[complexity]\ncascade_from = 0.9\nhard_from = 0.8", 3, "complexity.cascade_from"),
        ("[complexity]\nhard_from = 0.1", 2, "complexity.hard_from"),
        ("[confidence]\nthreshold = 2", 2, "confidence.threshold"),
        ("[confidence]\nthreshold = 1.5", 2, "confidence.threshold"),
        ("[confidence]\nthreshold = nan", 2, "confidence.threshold"),
        ("[confidence]\nthreshold = 'nan'", 2, "confidence.threshold"),
        ("[quota]\ncapacity = 1.5", 2, "quota.capacity"),
        ("[quota]\ncapacity = -1", 2, "quota.capacity"),
        ("[quota]\nrefill_per_s = -inf", 2, "quota.refill_per_s"),
        ("[quota]\non_exhausted = 'ignore'", 2, "quota.on_exhausted"),
        ("[edge]\nmin_battery = 50", 2, "edge.min_battery"),
        ("[speculation]\nmode = 'sometimes'", 2, "speculation.mode"),
        ("[speculation]\nmax_draft = 65", 2, "speculation.max_draft"),
        ("[speculation]\nmin_gain = 0.5", 2, "speculation.min_gain"),
        ("[quota]\ncapacity = 5\n[speculation]\n  'max_draft' = 0", 4, "speculation.max_draft"),
        ("quota.capacity = -1", 1, "quota.capacity"),
        ("\nquota = { capacity = -1 }", 2, "quota.capacity"),
        ("[speed]\nx = 1", 1, "speed"),
        ("quota = 5", 1, "quota"),
        ("[[quota]]\ncapacity = 5", 1, "quota"),
    ],
)
def test_a_mistake_is_refused_with_its_line_and_key(text: str, line: int, key: str) -> None:
    error = refused(text)
    assert error.param == key
    assert str(error).startswith(f"ours.toml:{line}: ") and key in str(error)


def test_what_a_placeholder_could_not_hide_is_never_redacted() -> None:
    for key in ("secret", "topic", "unreadable"):
        error = refused(f'[privacy]\nemail = "redact"\n{key} = "redact"')
        assert (error.param, str(error)[: len("ours.toml:3: ")]) == (f"privacy.{key}", "ours.toml:3: ")
    assert 'privacy.secret must be "block", "local_only" or "public", found \'redact\'' in str(refused('[privacy]\nsecret = "redact"'))
    privacy = Policy.parse(
        "[privacy]\n" + "".join(f'{key} = "redact"\n' for key in ("email", "phone", "card", "iban", "ip", "other"))
    ).privacy
    assert {privacy.email, privacy.phone, privacy.card, privacy.iban, privacy.ip, privacy.other} == {"redact"}


def test_a_mistake_says_what_was_meant_and_what_would_be_right() -> None:
    assert 'a whole number between 0 and 1099511627776 or "unlimited", found' in str(refused("[quota]\ncapacity = 'lots'"))
    assert "Expected `float` >= 0.0 - at `$[...].input`" in str(refused("[price]\nmodels = {a = {input = -1, output = 2}}"))
    assert str(refused("[privcy]\nx = 1").hint).startswith("did you mean privacy? known: privacy, complexity")
    assert str(refused("[quota]\ncapacty = 1").hint).startswith("did you mean capacity? known in [quota]: capacity, ")
    assert "must be a whole number between 1 and 64, found 65" in str(refused("[speculation]\nmax_draft = 65"))
    assert "must be a number between 0 and 1, found nan" in str(refused("[complexity]\nhard_from = nan"))
    assert "must be a list of words or phrases of up to four words" in str(refused("[privacy]\ntopic_words = ['A']"))


@pytest.mark.parametrize("text", ["[quota", "a = ", "[quota]\ncapacity = 1\ncapacity = 2", "\x00", "[" * 5000, "x = " + "[" * 50_000])
def test_what_is_no_toml_is_refused(text: str) -> None:
    refused(text)


def test_a_file_is_read_from_disk(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text("[quota]\ncapacity = 7")
    assert Policy.load(file).quota.capacity == Policy.load(str(file)).quota.capacity == 7
    with pytest.raises(ConfigError, match=r"none\.toml: No such file"):
        Policy.load(tmp_path / "none.toml")
    with pytest.raises(ConfigError):
        Policy.load(tmp_path)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        Policy.load(file)


def test_an_error_shows_no_more_than_a_short_piece_of_a_value() -> None:
    assert len(str(refused(f"[speculation]\nmode = '{'x' * 10_000}'"))) < 300


def test_a_gate_is_looked_for_beside_the_policy_and_the_hash_follows_what_is_in_it(tmp_path: Path) -> None:
    """A gate's numbers decide as the policy's own do; where the two files lie does not."""
    policies = {}
    for name, numbers in (("here", "one"), ("there", "one"), ("other", "two")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "gate.json").write_text(numbers)
        (folder / "ours.toml").write_text('[confidence]\ngate = "gate.json"\n')
        policies[name] = Policy.load(folder / "ours.toml")
    assert policies["here"].confidence.gate == str(tmp_path / "here" / "gate.json")
    assert policies["here"].hash == policies["there"].hash != policies["other"].hash != Policy.default().hash
    absolute = Policy.parse(f"[confidence]\ngate = {str(tmp_path / 'other' / 'gate.json')!r}\n", folder=tmp_path / "here")
    assert absolute.hash == policies["other"].hash


def test_a_gate_that_is_not_there_goes_by_its_name(tmp_path: Path) -> None:
    """Who answers is not hindered by it: no answer of a cascade is kept until it is there (judgement.py)."""
    named = [Policy.parse(f'[confidence]\ngate = "{name}"\n', folder=tmp_path) for name in ("a", "b", "a")]
    assert named[0].hash == named[2].hash != named[1].hash
