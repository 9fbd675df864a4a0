"""What counts as private, and what only looks like it. All numbers are made up; check digits are computed here by hand-written rules."""

import random
import uuid
from datetime import UTC, datetime

import pytest
from hybrid.router.detect.accounts import MAX_CANDIDATES, TooManyCandidates, count_cards, count_ibans
from hybrid.router.detect.network import count_addresses, count_emails
from hybrid.router.detect.phones import count_phones
from hybrid.router.detect.scan import Scan
from hybrid.router.detect.secrets import count_secrets
from hybrid.router.detect.topics import count_topics
from hybrid.router.privacy import DETECTORS


def with_luhn(digits: str) -> str:
    """`digits` and their check digit: double every second from the right, sum the digits, fill up to a multiple of ten."""
    total = sum(sum(map(int, str(int(d) * (2 if i % 2 == 0 else 1)))) for i, d in enumerate(reversed(digits)))
    return digits + str(-total % 10)


def with_mod97(country: str, account: str) -> str:
    """An IBAN: letters become 10..35, the check digits make the whole 1 modulo 97."""
    value = int("".join(str(int(c, 36)) for c in f"{account}{country}00"))
    return f"{country}{98 - value % 97:02}{account}"


CARD = with_luhn("411122223333444")
AMEX = with_luhn("37123456789012")
IBAN = with_mod97("DE", "100200300400500600")
IBAN_GB = with_mod97("GB", "WEST12345698765432")


@pytest.mark.parametrize(
    "text",
    [
        f"my card is {CARD}",
        f"card:{CARD}.",
        " ".join(CARD[i : i + 4] for i in range(0, 16, 4)),
        "-".join(CARD[i : i + 4] for i in range(0, 16, 4)) + " 12/27 123",
        " ".join(CARD),
        f"{AMEX[:4]} {AMEX[4:10]} {AMEX[10:]}",
        CARD.translate({ord("0") + i: 0xFF10 + i for i in range(10)}),  # full-width digits
        CARD[:8] + "\u200b" + CARD[8:],  # an invisible space
        CARD.translate({ord("0") + i: 0x0660 + i for i in range(10)}),  # Arabic digits
        f"1. {CARD}\n2. {AMEX}",
        "1234 " * 12 + " ".join(CARD[i : i + 4] for i in range(0, 16, 4)),
        f"{CARD[:4]} {CARD[4:8]}\n{CARD[8:12]} {CARD[12:]}",  # wrapped
        f"1. {CARD[:4]}-{CARD[4:8]}-{CARD[8:12]}-\r\n> {CARD[12:]}\n2. 17",
        f"{AMEX[:4]}\n  {AMEX[4:10]} {AMEX[10:]}",
        "\t".join(CARD[i : i + 4] for i in range(0, 16, 4)),
        "\N{MINUS SIGN}".join(CARD[i : i + 4] for i in range(0, 16, 4)),
        "\N{MIDDLE DOT}".join(CARD[i : i + 4] for i in range(0, 16, 4)),
        "".join(f"{digit}\ufe0f\u20e3" for digit in CARD),  # keycaps
        "\u034f".join(CARD),  # an invisible joiner
        "\u0332".join(CARD),  # underlined
    ],
)
def test_a_card_is_found_however_it_is_written(text: str) -> None:
    assert count_cards(Scan(text)) >= 1


@pytest.mark.parametrize(
    "text",
    [
        CARD[:-1] + str((int(CARD[-1]) + 1) % 10),
        "9" + CARD[1:],
        f"{CARD}12345",
        "0.4111222233334444",
        "1234 5678",
        str(2**60),
        "\n".join(CARD[i : i + 4] for i in range(0, 16, 4)),
    ],  # a column
)
def test_a_number_without_check_digit_prefix_or_length_is_no_card(text: str) -> None:
    assert count_cards(Scan(text)) == 0


@pytest.mark.parametrize(
    "text",
    [
        IBAN,
        f"IBAN {IBAN}, please",
        " ".join(IBAN[i : i + 4] for i in range(0, 22, 4)) + " is mine",
        IBAN_GB.lower(),
        f"{IBAN[:8]}\n{IBAN[8:16]} {IBAN[16:]}",
        "  ".join(IBAN[i : i + 4] for i in range(0, 22, 4)),
        f"{IBAN[:4]}.{IBAN[4:12]}.{IBAN[12:]}",
    ],
)
def test_an_account_is_found(text: str) -> None:
    assert count_ibans(Scan(text)) == 1


@pytest.mark.parametrize("text", [IBAN[:-1] + "1", "XX" + IBAN[2:], IBAN[:-2], f"A{IBAN}", "DE12"])
def test_an_account_needs_its_check_digits_country_and_length(text: str) -> None:
    assert count_ibans(Scan(text)) == 0


@pytest.mark.parametrize(
    "text",
    [
        "bob@example.com",
        "<b.o+b@mail.example.co.uk>",
        "jörg@müller.de",
        "bob＠example.com",
        "bob [at] example [dot] com",
        "x b@c.io.",
        "bob at example dot com",
        "?to=bob%40example.com&",
        "_bob@example.com_",
        "bob@mu\u0308ller.de",
        "bob@example\u3002com",
        "git@example.com",
        "my.git@example.com: hello",
    ],
)
def test_an_email_is_found(text: str) -> None:
    assert count_emails(Scan(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "@app.route",
        "a@b",
        "git@github.com:o/r",
        "5 @ 3.99",
        "user@",
        "@",
        "meet @ noon. ok",
        "ssh://git@github.com/o/r",
        "connect it at the dot matrix",
        "`@app.some_name`",
    ],
)
def test_an_at_sign_is_no_email(text: str) -> None:
    assert count_emails(Scan(text)) == 0


@pytest.mark.parametrize(
    "text",
    [
        "10.1.2.3",
        "http://81.2.69.142:80/",
        "2001:db8::8a2e:370:7334",
        "[fe80::1]",
        "2001:db8:0:0:1:0:0:1",
        "64:ff9b::192.0.2.33",
        "_10.1.2.3_",
        "010.001.002.003",
    ],
)
def test_the_address_of_a_machine_is_found(text: str) -> None:
    assert count_addresses(Scan(text)) >= 1


@pytest.mark.parametrize(
    "text",
    ["127.0.0.1", "255.255.255.0", "0.0.0.0", "::1", "v1.2.3.4", "1.2.3.4.5", "300.1.1.1", "std::vector", "a::b", "12:30:45", "1.2.3"],
)
def test_loopback_versions_times_and_names_are_no_addresses(text: str) -> None:
    assert count_addresses(Scan(text)) == 0


@pytest.mark.parametrize(
    "text",
    [
        "+49 30 1234567",
        "+14155550123",
        "+(44) 20 7946 0958",
        "0049 30 1234567",
        "(415) 555-0123",
        "415-555-0123 ext 4",
        "415.555.0123x88",
        "020 7946 0958",
        "01.84.17.00.00",
        "(08) 8747 6301",
        "call me at 4155550123",
        "my mobile: 791 112 345",
        "tel 467 3395",
        "4155550123 4155550199 call: 415-555-0123",
        "+49 30\n1234567",
        "+49\n(30) 1234567",
        "_415-555-0123_",
        "415\t555\t0123",
    ],
)
def test_a_phone_is_found_by_its_shape_or_by_what_is_said(text: str) -> None:
    assert count_phones(Scan(text)) >= 1


@pytest.mark.parametrize(
    "text",
    [
        "order 4155550123",
        "please call the service with order number 4155550123",
        "2024-03-05 10:20:30",
        "call me on 2024-03-05 10:20",
        "05.03.2024 10",
        "3.14159265358979",
        "call version 10.12.14.16",
        "the years 1914 1918 1939 1945",
        "12 34 56",
        "1,234,567,890",
        "call f(1234567890a)",
        "x_415-555-0123",
        "415-555-0123_old",
        "415\n555\n0123",
        "+1\n23456\n7890",
    ],
)
def test_order_numbers_dates_and_versions_are_no_phones(text: str) -> None:
    assert count_phones(Scan(text)) == 0


def test_guids_timestamps_and_order_numbers_alarm_less_than_once_in_a_hundred() -> None:
    source = random.Random(5)

    def moment() -> datetime:
        return datetime.fromtimestamp(source.randrange(2 * 10**9), UTC)

    makers = {
        "guid": lambda: str(uuid.UUID(int=source.getrandbits(128), version=4)),
        "ten digits": lambda: f"{source.randrange(10**10):010}",
        "seconds": lambda: str(source.randrange(10**9, 2 * 10**9)),
        "milliseconds": lambda: str(source.randrange(10**12, 2 * 10**12)),
        "iso": lambda: moment().isoformat(),
        "plain": lambda: f"{moment():%Y-%m-%d %H:%M:%S}",
        "german": lambda: f"{moment():%d.%m.%Y %H:%M}",
        "hash": lambda: f"{source.getrandbits(160):040x}",
    }
    for name, make in makers.items():
        for sentence in ("The id is {}.", "Order number: {}", "Call the service with id {} now."):
            scans = [Scan(sentence.format(make())) for _ in range(300)]
            alarms = sum(any(count(scan) for count in DETECTORS.values()) for scan in scans)
            assert alarms < 3, (name, sentence, alarms)


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_" + "a1B2" * 9,
        "github_pat_" + "a1B2_" * 6,
        "sk-" + "a1B2" * 6,
        "sk-proj-" + "a1B2" * 10,
        "sk_live_" + "a1B2" * 6,
        "xoxb-1234567890-abc",
        "AIza" + "a1B2-" * 7,
        "glpat-" + "a1B2" * 5,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl",
        "Authorization: Bearer a1B2c3D4e5F6g7H8",
        "password = 'hunter2!x'",
        "DB_PASSWORD=s3cr3tValue",
        "my password is Tr0ub4dor",
        '{"api_key": "9f8e7d6c5b4a"}',
        "client_secret: q8Zx71LmPw",
        "postgres://bob:hunter2@db/prod",
    ],
)
def test_a_secret_is_found(text: str) -> None:
    assert count_secrets(Scan(text)) >= 1


@pytest.mark.parametrize(
    "text",
    [
        "Write a password strength checker.",
        "password: str",
        "password = os.environ['DB_PASSWORD']",
        "token = tokenizer.next_token()",
        "max_tokens=100000",
        "the secret is patience",
        "The secretary is friendly.",
        "password: aaaaaaa1",
        "risk-averse and task-oriented-people-everywhere",
        "key = value1234",
        "https://example.com:8080/path",
        "the token is 123456",
    ],
)
def test_talk_about_secrets_is_none(text: str) -> None:
    assert count_secrets(Scan(text)) == 0


@pytest.mark.parametrize("text", ["The diagnosis came.", "DIAGNOSIS:", "my\nblood-pressure", "self\u2011harm", "(hiv)"])
def test_a_topic_is_found_as_whole_words_across_case_and_marks(text: str) -> None:
    assert count_topics(Scan(text), ("diagnosis", "blood pressure", "self-harm", "hiv")) == 1


@pytest.mark.parametrize("text", ["diagnostic", "blood and pressure", "archive", "harm yourself"])
def test_a_part_of_a_word_is_no_topic(text: str) -> None:
    assert count_topics(Scan(text), ("diagnosis", "blood pressure", "self-harm", "hiv")) == 0


def test_more_candidates_than_are_validated_is_an_alarm_of_its_own() -> None:
    wrong = CARD[:-1] + str((int(CARD[-1]) + 1) % 10)
    assert count_cards(Scan(f"{wrong}\n" * MAX_CANDIDATES)) == 0
    with pytest.raises(TooManyCandidates):
        count_cards(Scan(f"{wrong}\n" * (MAX_CANDIDATES + 1)))
