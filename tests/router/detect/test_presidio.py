"""Names and places, where the recogniser and a model are installed; and what is said where they are not."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
from hybrid.router.detect.presidio import MODELS
from hybrid.router.policy.policy import Policy
from hybrid.router.privacy import classify

POLICY = Policy.parse('[privacy]\ndetectors = ["presidio"]\ndetector_deadline_ms = 60000\norganization = "local_only"')
MODEL = next((name for name in (os.environ.get("HYBRID_SPACY_MODEL"), *MODELS) if name and find_spec(name)), None)
THERE = find_spec("presidio_analyzer") is not None and MODEL is not None
installed = pytest.mark.skipif(not THERE, reason="the extra pii or a spaCy model is not installed")


@pytest.mark.skipif(THERE, reason="the extra pii is installed")
def test_a_policy_that_asks_for_a_recogniser_that_is_not_there_keeps_everything() -> None:
    assert classify("hello", POLICY).failed == ("presidio is missing",)
    assert classify("hello", POLICY).verdict == "local_only"


def test_the_adapter_is_imported_without_presidio() -> None:
    code = "import hybrid.router.decide, sys; assert not {'presidio_analyzer', 'spacy', 'phonenumbers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@installed
def test_names_places_and_organizations_are_found() -> None:
    found = classify("My name is Anna Schwarz, I live in Lisbon and work at Siemens.", POLICY)
    assert (dict(found.findings), found.failed) == ({"person": 1, "place": 1, "organization": 1}, ())
    assert classify("What is the square root of two?", POLICY).verdict == "public"


@installed
def test_a_text_in_another_language_is_unreadable() -> None:
    found = classify("Ich heiße Anna Schwarz und wohne seit vielen Jahren in einem kleinen Dorf bei Lissabon.", POLICY)
    assert dict(found.findings) == {"unreadable": 1}
