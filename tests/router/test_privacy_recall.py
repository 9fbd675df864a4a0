"""What is found in sentences that others have labelled. The data is not part of this repository."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from hybrid.router.detect.search import search
from hybrid.router.policy.policy import Policy
from hybrid.router.policy.tables import PERSONAL

FILE = Path(os.environ.get("HYBRID_SHARED", "../shared")) / "data" / "privacy" / "pii_spans_half.jsonl"
KINDS = {
    "CREDIT_CARD": "card",
    "IBAN_CODE": "iban",
    "EMAIL_ADDRESS": "email",
    "IP_ADDRESS": "ip",
    "DOMAIN_NAME": "url",
    "US_SSN": "ssn",
    "PHONE_NUMBER": "phone",
}


def test_what_has_a_shape_is_found_whole_and_nothing_else_is_taken_for_it() -> None:
    if not FILE.exists():
        pytest.skip(f"{FILE} is not there: set HYBRID_SHARED to the folder of the shared data")
    policy = Policy.parse("[privacy]\n" + "\n".join(f'{kind} = "local_only"' for kind in PERSONAL))
    covered, labelled, right, alarms = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for line in FILE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        (found,) = search([row["text"]], policy.privacy).findings
        labels = [(KINDS[span["type"]], span["start"], span["end"]) for span in row["spans"] if span["type"] in KINDS]
        for kind, start, end in labels:
            labelled[kind] += 1
            covered[kind] += any(one.kind == kind and one.start <= start and end <= one.end for one in found)
        for one in found:
            alarms[one.kind] += 1
            right[one.kind] += any(one.kind == kind and one.start < end and start < one.end for kind, start, end in labels)
    for kind in KINDS.values():
        assert labelled[kind] and covered[kind] >= (0.75 if kind == "phone" else 0.97) * labelled[kind], (kind, covered, labelled)
        assert right[kind] >= 0.95 * alarms[kind], (kind, right, alarms)
