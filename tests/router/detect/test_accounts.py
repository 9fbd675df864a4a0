"""Cards and accounts. All numbers are made up; check digits are computed here by hand-written rules."""

import pytest
from hybrid.router.detect.accounts import find_cards, find_ibans
from hybrid.router.detect.budget import MAX_CANDIDATES, TooManyCandidates
from hybrid.router.detect.scan import Scan


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
        f"id,name\n{CARD}.0,Jane",  # as tables of numbers write it
        f"Visa{CARD}",
        f"_{CARD}_",
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
    assert len(find_cards(Scan(text))) >= 1


@pytest.mark.parametrize(
    "text",
    [
        CARD[:-1] + str((int(CARD[-1]) + 1) % 10),
        "9" + CARD[1:],
        f"{CARD}12345",
        "0.4111222233334444",
        f"{CARD}a",
        f"a{CARD}",
        f"9ce{CARD}",
        "1234 5678",
        str(2**60),
        "\n".join(CARD[i : i + 4] for i in range(0, 16, 4)),
    ],  # a column
)
def test_a_number_without_check_digit_prefix_or_length_is_no_card(text: str) -> None:
    assert len(find_cards(Scan(text))) == 0


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
    assert len(find_ibans(Scan(text))) == 1


@pytest.mark.parametrize("text", [IBAN[:-1] + "1", "XX" + IBAN[2:], IBAN[:-2], f"A{IBAN}", "DE12"])
def test_an_account_needs_its_check_digits_country_and_length(text: str) -> None:
    assert len(find_ibans(Scan(text))) == 0


def test_more_candidates_than_are_validated_is_an_alarm_of_its_own() -> None:
    wrong = CARD[:-1] + str((int(CARD[-1]) + 1) % 10)
    assert find_cards(Scan(f"{wrong}\n" * MAX_CANDIDATES)) == []
    with pytest.raises(TooManyCandidates):
        find_cards(Scan(f"{wrong}\n" * (MAX_CANDIDATES + 1)))
