"""What is private stays: over the whole conversation, whatever fails, and by a type that nobody else can make."""

import copy
import pickle
from pathlib import Path

import pytest
from hybrid.router import privacy
from hybrid.router.detect import registry
from hybrid.router.detect.detector import Rule
from hybrid.router.policy.policy import Policy
from hybrid.router.policy.tables import PERSONAL
from hybrid.router.privacy import LocalOnly, Shareable, assess, classify, clear, require_shareable
from hybrid.router.redact.mapping import RedactionMapping
from hybrid.router.request import RouteRequest
from hybrid.router.verdict import VERDICTS, strictest
from hybrid.shared_protocol.errors import NotShareable
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.support.type_errors import type_errors

POLICY = Policy.default()
EVERYTHING = Policy.parse("[privacy]\n" + "\n".join(f'{kind} = "local_only"' for kind in PERSONAL))
MAIL = "bob@example.com"


def test_verdicts_only_ever_get_stricter() -> None:
    assert VERDICTS == ("public", "redact", "local_only", "block")
    assert strictest([]) == "public"
    for i, one in enumerate(VERDICTS):
        for j, other in enumerate(VERDICTS):
            assert strictest([one, other]) == VERDICTS[max(i, j)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (MAIL, "email"),
        ("+49 30 1234567", "phone"),
        ("4111 1111 1111 1111", "card"),
        ("DE89370400440532013000", "iban"),
        ("10.1.2.3", "ip"),
        ("AKIAIOSFODNN7EXAMPLE", "secret"),
        ("the diagnosis", "topic"),
    ],
)
def test_each_kind_has_the_verdict_of_its_key_in_the_policy(text: str, kind: str) -> None:
    assert classify(text, POLICY).verdict == ("block" if kind == "secret" else "local_only")
    assert kind in classify(text, POLICY).findings
    loose = Policy.parse("[privacy]\n" + "\n".join(f'{k} = "public"' for k in ("email", "phone", "card", "iban", "ip", "secret", "topic")))
    assert classify(text, loose).verdict == "public"
    strict = Policy.parse(f'[privacy]\n{kind} = "block"')
    assert classify(text, strict).verdict == "block"


def test_more_topic_words_add_to_the_shipped_ones_and_a_list_of_topic_words_takes_their_place() -> None:
    more = Policy.parse('[privacy]\nmore_topic_words = ["my boss"]')
    assert [classify(text, more).verdict for text in ("the diagnosis", "My boss!", "the boss")] == ["local_only", "local_only", "public"]
    only = Policy.parse('[privacy]\ntopic_words = []\nmore_topic_words = ["my boss"]')
    assert [classify(text, only).verdict for text in ("the diagnosis", "My boss!")] == ["public", "local_only"]


@pytest.mark.parametrize(
    "request_",
    [
        RouteRequest.of(
            [{"role": "user", "content": MAIL}, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "continue"}]
        ),
        RouteRequest.of([{"role": "system", "content": MAIL}, {"role": "user", "content": "hi"}]),
        RouteRequest.of([{"role": "user", "content": "hi"}, {"role": "tool", "content": MAIL, "tool_call_id": "1"}]),
        RouteRequest.of([{"role": "user", "content": "hi", "name": MAIL}]),
        RouteRequest.of([{"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": MAIL}]}]),
        RouteRequest.of(
            [{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": f'{{"to":"\\n{MAIL}"}}'}}]}]
        ),
        RouteRequest.of("hi", tools=[{"description": MAIL}]),
        RouteRequest.of("hi", sampling=SamplingParams(stop=(MAIL,))),
        RouteRequest.of([{"role": "user", "content": [{"type": "image_url"}, {"type": "text", "text": "what is this?"}]}]),
    ],
)
def test_one_private_place_makes_the_whole_conversation_private(request_: RouteRequest) -> None:
    assert isinstance(clear(request_, POLICY), LocalOnly)


def called_with(arguments: str) -> RouteRequest:
    return RouteRequest.of([{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": arguments}}]}])


@pytest.mark.parametrize(
    "arguments",
    [
        r'{"to": "bob\u0040example.com", "to": "x"}',  # a key that occurs twice, where whoever decodes keeps the last
        r'{"to": "bob\u0040example.com", "te',  # cut off
        r'{"n": NaN, "to": "bob\uff20example.com"}',  # no JSON to us, but to others
        r'{"inner": "{\"to\": \"bob\\u0040example.com\"}"}',
        r'{"half": "\ud83d", "card": "4111 \ud835\udfd9111 1111 1111"',
    ],
)
def test_escapes_hide_nothing_even_where_the_json_is_broken(arguments: str) -> None:
    assert assess(called_with(arguments), POLICY).verdict == "local_only"
    redacting = Policy.parse('[privacy]\nemail = "redact"\ncard = "redact"')
    cleared = clear(called_with(arguments), redacting, mapping=RedactionMapping(bytes))
    assert isinstance(cleared, LocalOnly) or "bob" not in cleared.value.messages[0].tool_calls[0].arguments


def test_a_result_in_json_is_searched_as_it_reads_and_a_finding_counts_once() -> None:
    number = {"role": "tool", "content": r'{"note": "Reach Jane at:\n555-867-5309"}', "tool_call_id": "1"}
    assert dict(assess(RouteRequest.of([number]), POLICY).findings) == {"phone": 1}
    mail = {"role": "user", "content": rf'print("hello\n") # {MAIL}'}
    assert dict(assess(RouteRequest.of([mail]), POLICY).findings) == {"email": 1}
    assert assess(RouteRequest.of(r"Why is \nabla \times \theta 0 at C:\new\table?"), POLICY).verdict == "public"


@pytest.mark.parametrize("floor", VERDICTS)
def test_a_conversation_is_never_less_private_than_it_was(floor: str) -> None:
    request = RouteRequest.of("continue")
    assert assess(request, POLICY, floor).verdict == floor  # type: ignore[arg-type]
    assert isinstance(clear(request, POLICY, floor), Shareable if floor == "public" else LocalOnly)  # type: ignore[arg-type]


def test_a_detector_that_crashes_makes_the_text_private(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(scan: object) -> int:
        raise RuntimeError(MAIL)

    monkeypatch.setitem(registry.OURS, "iban", lambda policy: Rule("iban", ("iban",), crash))
    with_crash = Policy.parse("[privacy]\nmax_characters = 12345")  # detectors are chosen once per policy
    found = classify("hello", with_crash)
    assert (found.verdict, dict(found.findings), found.failed) == ("local_only", {"unreadable": 1}, ("iban crashed",))
    assert classify("hello", Policy.parse('[privacy]\nmax_characters = 12345\nunreadable = "block"')).verdict == "block"


def test_a_conversation_too_long_to_search_is_private() -> None:
    policy = Policy.parse("[privacy]\nmax_characters = 1000")
    assert assess(RouteRequest.of("a" * 1000), policy).verdict == "public"
    assert assess(RouteRequest.of("a" * 1001), policy).verdict == "local_only"
    turns = [{"role": "user", "content": "a" * 400} for _ in range(3)]
    assert assess(RouteRequest.of(turns), policy).verdict == "local_only"


@pytest.mark.parametrize(
    "atom",
    [
        "4111111111111112 ",
        "DE89370400440532013001 ",
        "1 ",
        "1.",
        "@a.",
        ":1",
        "password=",
        "eyJa.",
        "(0",
        "call 12",
        "a-b_",
        "\u0301",
        "１",
        "://",
        "a://a",
        ".com",
        "www.",
        "12-34-56",
        "A1 ",
        "passport 1",
        "00:",
        "5 may ",
        "PuTTY-User-Key-File-2: ",
    ],
)
def test_a_hundred_kilobytes_of_anything_are_judged(atom: str) -> None:
    """Linear work: every pattern has bounded repeats, and what is validated is counted. A quadratic one would outlast the suite's limit."""
    text = (atom * (100_000 // len(atom) + 1))[:100_000]
    found = classify(f"{text} {MAIL}", EVERYTHING).findings
    assert found["email"] == 1  # the end is searched too
    assert not atom.startswith(("4111", "DE89")) or found["unreadable"] == 1  # more candidates than are validated


# ---- the type --------------------------------------------------------------------------------------------------


def shareable() -> Shareable[RouteRequest]:
    cleared = clear(RouteRequest.of("hello"), POLICY)
    assert isinstance(cleared, Shareable)
    return cleared


def test_what_is_cleared_can_be_read_and_copied() -> None:
    one = shareable()
    assert one.value == RouteRequest.of("hello")
    require_shareable(one)
    assert copy.copy(one) is one and copy.deepcopy([one])[0] is one
    assert repr(one) == "Shareable(...)"


def test_nobody_else_can_make_one() -> None:
    request = RouteRequest.of(MAIL)
    for forged_mint in (None, object(), privacy._Mint()):
        with pytest.raises(NotShareable):
            Shareable(request, mint=forged_mint)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Shareable(request)  # type: ignore[call-arg]
    husk = object.__new__(Shareable)
    with pytest.raises(NotShareable):
        _ = husk.value
    with pytest.raises(NotShareable):
        require_shareable(husk)
    with pytest.raises(AttributeError):
        husk.value = request
    with pytest.raises(NotShareable):
        type("Mine", (Shareable,), {})


def test_what_only_says_that_it_is_one_is_refused() -> None:
    real = shareable()

    class Impostor:
        value = RouteRequest.of(MAIL)
        __class__ = Shareable  # type: ignore[assignment]

        def __hash__(self) -> int:
            return hash(real)

        def __eq__(self, other: object) -> bool:
            return other is real

    assert isinstance(Impostor(), Shareable)
    with pytest.raises(NotShareable):
        require_shareable(Impostor())


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_makes_none(protocol: int) -> None:
    with pytest.raises(NotShareable):
        pickle.dumps(shareable(), protocol)
    husk = pickle.loads(b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00chybrid.router.privacy\nShareable\n)\x81.")
    with pytest.raises(NotShareable):
        require_shareable(husk)


@pytest.mark.parametrize("value", [None, "hello", RouteRequest.of("hello"), clear(RouteRequest.of(MAIL), POLICY)])
def test_a_client_refuses_what_was_not_cleared_at_run_time(value: object) -> None:
    with pytest.raises(NotShareable) as caught:
        require_shareable(value)
    assert MAIL not in str(caught.value)


def test_a_local_only_shows_no_text() -> None:
    cleared = clear(RouteRequest.of(MAIL), POLICY)
    assert isinstance(cleared, LocalOnly)
    assert MAIL not in repr(cleared) + repr(cleared.assessment)


SNIPPET = """
from hybrid.router.policy.policy import Policy
from hybrid.router.privacy import LocalOnly, Shareable, clear
from hybrid.router.request import RouteRequest

def send(request: Shareable[RouteRequest]) -> None: ...

request = RouteRequest.of("hello")
cleared = clear(request, Policy.default())
if isinstance(cleared, Shareable):
    send(cleared)
else:
    send(cleared)
send(request)
send(Shareable(request))
"""


def test_a_type_checker_refuses_what_was_not_cleared(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    errors = type_errors(SNIPPET, tmp_path)
    assert [number for number, _ in errors] == [13, 14, 15], errors
    lines = [line for _, line in errors]
    assert 'incompatible type "LocalOnly[RouteRequest]"' in lines[0]
    assert 'incompatible type "RouteRequest"' in lines[1]
    assert 'Missing named argument "mint"' in lines[2]
