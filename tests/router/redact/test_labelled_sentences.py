"""Sentences that people have labelled: what is sent of them holds none of the labels, and comes back letter by letter."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hybrid.router.policy.policy import Policy
from hybrid.router.privacy import Shareable, clear
from hybrid.router.redact.mapping import RedactionMapping
from hybrid.router.redact.restore import restored
from hybrid.router.request import RouteRequest

FILE = Path(os.environ.get("HYBRID_SHARED", "../shared")) / "data" / "privacy" / "pii_spans_half.jsonl"
POLICY = Policy.parse(
    "[privacy]\n" + "".join(f'{kind} = "redact"\n' for kind in ("email", "phone", "card", "iban", "ssn", "ip", "national_id"))
)
LABELS = ("EMAIL_ADDRESS", "CREDIT_CARD", "IBAN_CODE", "IP_ADDRESS", "US_SSN", "PHONE_NUMBER")


def test_no_label_is_sent_and_every_sentence_comes_back() -> None:
    if not FILE.exists():
        pytest.skip(f"{FILE} is not there: set HYBRID_SHARED to the folder of the shared data")
    kept, left, labels = Counter[bool](), Counter[str](), Counter[str]()
    for line in FILE.read_bytes().splitlines():
        row = msgspec.json.decode(line)
        into = RedactionMapping()
        cleared = clear(RouteRequest.of(row["text"]), POLICY, "public", into)
        assert isinstance(cleared, Shareable)
        sent = cleared.value.messages[0].content or ""
        assert restored(sent, into.values()) == row["text"]
        kept[bool(cleared.assessment.replaced)] += 1
        for span in row["spans"]:
            if span["type"] in LABELS:
                labels[span["type"]] += 1
                left[span["type"]] += row["text"][span["start"] : span["end"]] in sent
    assert kept[True] >= 150
    assert {kind for kind in LABELS if left[kind]} <= {"PHONE_NUMBER"}
    assert left["PHONE_NUMBER"] <= 0.05 * labels["PHONE_NUMBER"]  # a number without a word beside it
