"""Names of persons, places and organizations, by Presidio and a spaCy model: `pip install '.[pii]'` and a model, such as
`python -m spacy download en_core_web_sm`. A policy asks for it by `detectors = ["presidio"]`.

A recogniser guesses: it misses names, and it takes words for names. It only knows English, so a text in another language is unreadable.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ..complexity.features import turn_of
from ..complexity.reading import Reading
from .finding import Finding
from .scan import Scan

MODELS = ("en_core_web_lg", "en_core_web_md", "en_core_web_sm")  # the first that is installed; HYBRID_SPACY_MODEL names another
KINDS = {"PERSON": "person", "LOCATION": "place", "ORGANIZATION": "organization"}


class Recogniser:
    """Presidio's analyzer with nothing but the model's own entities: numbers and addresses have better detectors here."""

    name = "presidio"
    kinds = (*KINDS.values(), "unreadable")
    max_characters = 100_000  # half a minute of work; a deadline ends it sooner

    def __init__(self, analyzer: Any) -> None:
        self._analyzer = analyzer

    def find(self, scan: Scan) -> list[Finding]:
        if not any(map(str.isalpha, scan.written)):
            return []
        if turn_of(Reading(scan.text)).foreign >= 0.5:
            return [Finding("unreadable", 0, len(scan.written))]
        results = self._analyzer.analyze(scan.written, language="en", entities=list(KINDS))
        return [Finding(KINDS[one.entity_type], one.start, one.end) for one in results if one.start < one.end]


def recogniser() -> Recogniser:
    """Load Presidio and the model. Raises ImportError where either is not installed."""
    presidio: Any = import_module("presidio_analyzer")  # not installed where types are checked
    engines: Any = import_module("presidio_analyzer.nlp_engine")
    recognisers: Any = import_module("presidio_analyzer.predefined_recognizers")
    wanted = os.environ.get("HYBRID_SPACY_MODEL")
    model = next((name for name in ([wanted] if wanted else MODELS) if find_spec(name)), None)
    if model is None:
        raise ImportError("no spaCy model is installed")
    models = {"nlp_engine_name": "spacy", "models": [{"lang_code": "en", "model_name": model}]}
    engine = engines.NlpEngineProvider(nlp_configuration=models).create_engine()
    known = presidio.RecognizerRegistry(recognizers=[recognisers.SpacyRecognizer()], supported_languages=["en"])
    return Recogniser(presidio.AnalyzerEngine(registry=known, nlp_engine=engine, supported_languages=["en"]))
