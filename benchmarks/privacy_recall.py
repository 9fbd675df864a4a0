"""How much of what is private is found, how often an alarm is false, and what is not found at all.

    python benchmarks/privacy_recall.py [--json] [--data FILE] [--made 400]

Labelled sentences: `data/privacy/pii_spans_half.jsonl` below --shared, HYBRID_SHARED or ../shared. The detectors were tuned on its even
ids only; odd ones are reported apart. A labelled value counts as found when one finding of its kind covers all of it; a finding counts as
right when it touches a label of its kind. Values and harmless numbers are made from a fixed seed besides. Intervals are Wilson's, 95 %.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hybrid.router.detect.finding import Finding
from hybrid.router.detect.search import search
from hybrid.router.policy.policy import Policy
from hybrid.router.policy.tables import PERSONAL
from hybrid.router.privacy import assess
from hybrid.router.request import RouteRequest
from privacy_made import EVIDENCE, HARMLESS, HARMLESS_SENTENCES, SENTENCES, VALUES, digits

LABELS = {
    "CREDIT_CARD": "card",
    "IBAN_CODE": "iban",
    "EMAIL_ADDRESS": "email",
    "IP_ADDRESS": "ip",
    "DOMAIN_NAME": "url",
    "US_SSN": "ssn",
    "PHONE_NUMBER": "phone",
    "US_DRIVER_LICENSE": "national_id",
    "DATE_TIME": "date",
    "PERSON": "person",
    "GPE": "place",
    "STREET_ADDRESS": "address",
    "ORGANIZATION": "organization",
}
BARS = {**dict.fromkeys(("card", "iban", "email", "ip", "url", "ssn"), (0.97, 0.95)), "phone": (0.75, 0.95)}  # recall, precision
NAMES = ("person", "place", "address", "organization")
TEN_REGIONS = ("US", "GB", "DE", "FR", "IT", "ES", "IN", "BR", "JP", "MX")
EVERY_KIND = "[privacy]\n" + "\n".join(f'{kind} = "local_only"' for kind in PERSONAL)


def share(hits: int, of: int) -> dict[str, Any]:
    """A share with its Wilson interval."""
    if of == 0:
        return {"share": None, "of": 0}
    z, p = 1.96, hits / of
    middle, half = p + z * z / (2 * of), z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    low, high = ((middle - half) / (1 + z * z / of), (middle + half) / (1 + z * z / of))
    return {"share": round(p, 4), "hits": hits, "of": of, "ci95": [round(max(0.0, low), 4), round(min(1.0, high), 4)]}


def found_in(text: str, policy: Policy) -> list[Finding]:
    (findings,) = search([text], policy.privacy).findings
    return findings


def on_labels(rows: Iterable[Mapping[str, Any]], policy: Policy) -> dict[str, Any]:
    """Recall and precision per kind."""
    covered, labelled, right, alarms = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for row in rows:
        findings = found_in(row["text"], policy)
        labels = [(LABELS[span["type"]], span["start"], span["end"]) for span in row["spans"] if span["type"] in LABELS]
        for kind, start, end in labels:
            labelled[kind] += 1
            covered[kind] += any(_is(one, kind) and one.start <= start and end <= one.end for one in findings)
        for one in findings:
            alarms[one.kind] += 1
            right[one.kind] += any(_is(one, kind) and one.start < end and start < one.end for kind, start, end in labels)
    kinds = sorted(labelled | alarms)
    return {kind: {"recall": share(covered[kind], labelled[kind]), "precision": share(right[kind], alarms[kind])} for kind in kinds}


def _is(one: Finding, kind: str) -> bool:
    """A recogniser calls the parts of an address places."""
    return one.kind == kind or (kind == "address" and one.kind == "place")


def on_made(policy: Policy, count: int) -> dict[str, Any]:
    """Recall on values made here, in one of a few sentences each; the finding must be the value and nothing else."""
    source = random.Random(11)
    result = {}
    for kind, make in VALUES.items():
        hits = 0
        for _ in range(count):
            value, sentence = make(source), source.choice(SENTENCES)
            text = sentence.format(value)
            start = sentence.index("{}")
            hits += Finding(kind, start, start + len(value)) in found_in(text, policy)
        result[kind] = share(hits, count)
    return result


def phones_by_evidence(rows: Iterable[Mapping[str, Any]], policy: Policy) -> dict[str, Any]:
    """Recall of labelled phone numbers by what tells them: a +, separators, or nothing but digits."""
    hits, of = Counter[str](), Counter[str]()
    for row in rows:
        findings = found_in(row["text"], policy)
        for span in row["spans"]:
            if span["type"] == "PHONE_NUMBER":
                value = row["text"][span["start"] : span["end"]]
                evidence = "+" if value.startswith("+") else "bare" if value.isdigit() else "separators"
                of[evidence] += 1
                hits[evidence] += any(one.kind == "phone" and one.start <= span["start"] and span["end"] <= one.end for one in findings)
    return {evidence: share(hits[evidence], of[evidence]) for evidence in sorted(of)}


def false_alarms(policy: Policy, count: int) -> dict[str, Any]:
    """Texts with a harmless number in which anything but a date is found."""
    source = random.Random(12)
    result = {}
    for name, make in HARMLESS.items():
        texts = [source.choice(HARMLESS_SENTENCES).format(make(source)) for _ in range(count)]
        result[name] = share(sum(any(one.kind != "date" for one in found_in(text, policy)) for text in texts), count)
    return result


def phone_curve(policy: Policy, count: int) -> dict[str, Any]:
    """Random ten-digit numbers: what the library alone says, region after region, and what is found here by the evidence beside them."""
    import phonenumbers

    source = random.Random(13)
    numbers = [digits(source, 10) for _ in range(count)]
    left, library = list(numbers), []
    for region in TEN_REGIONS:
        left = [number for number in left if not _valid(phonenumbers, number, region)]
        library.append({"region": region, "valid": share(count - len(left), count)})
    real = [number for number in numbers if _valid(phonenumbers, number, "US")]
    return {
        "library_alone": library,
        "alarms_on_random_numbers": {name: share(_phones(map(write, numbers), policy), count) for name, write in EVIDENCE.items()},
        "found_of_valid_us_numbers": {name: share(_phones(map(write, real), policy), len(real)) for name, write in EVIDENCE.items()},
    }


def _valid(phonenumbers: Any, number: str, region: str) -> bool:
    try:
        return bool(phonenumbers.is_valid_number_for_region(phonenumbers.parse(number, region), region))
    except phonenumbers.NumberParseException:
        return False


def _phones(texts: Iterable[str], policy: Policy) -> int:
    return sum(any(one.kind == "phone" for one in found_in(text, policy)) for text in texts)


def long_and_many(rows: list[Mapping[str, Any]], policy: Policy) -> dict[str, Any]:
    """One value in 300,000 characters of labelled-harmless sentences; one in the first of six turns; one that goes on in the next line."""
    source = random.Random(14)
    harmless = [row["text"] for row in rows if not row["spans"] and not found_in(row["text"], policy)]
    filler = ""
    while len(filler) < 300_000:
        filler += source.choice(harmless) + "\n"
    longs = turns = 0
    for make in VALUES.values():
        for place in (0, len(filler) // 2, len(filler)):
            text = f"{filler[:place]} {make(source)} {filler[place:]}"
            longs += any(one.start <= place + 1 < one.end for one in found_in(text, policy))
        for _ in range(20):
            said = [source.choice(SENTENCES).format(make(source)), *(source.choice(harmless) for _ in range(5))]
            roles = ("user", "assistant") * 3
            request = RouteRequest.of([{"role": role, "content": text} for role, text in zip(roles, said, strict=True)])
            turns += assess(request, policy).verdict != "public"
    wrapped = {
        "card": "4111 1111\n1111 1111",
        "iban": "DE89 3704 0044\n0532 0130 00",
        "phone": "+49 30\n1234567",
        "email": "anna@exam\nple.com",
    }
    return {
        "filler_alarms": len(found_in(filler, policy)),
        "long_texts": share(longs, 3 * len(VALUES)),
        "first_of_six_turns": share(turns, 20 * len(VALUES)),
        "over_the_end_of_a_line": {kind: any(one.kind == kind for one in found_in(text, policy)) for kind, text in wrapped.items()},
    }


def with_recogniser(rows: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Names and addresses by the plug-in, where it is installed."""
    policy = Policy.parse(f'{EVERY_KIND}\ndetectors = ["presidio"]\ndetector_deadline_ms = 60000')
    failed = search(["hello"], policy.privacy).failed
    if failed:
        return {"failed": list(failed)}
    unreadable = sum(any(one.kind == "unreadable" for one in found_in(row["text"], policy)) for row in rows)
    figures = {kind: figures for kind, figures in on_labels(rows, policy).items() if kind in NAMES}
    return {**figures, "texts_in_another_language": share(unreadable, len(rows))}


def bars(result: Mapping[str, Any]) -> dict[str, bool]:
    """Whether each bar of the page on privacy holds, on all labels."""
    held = {}
    for kind, (recall, precision) in BARS.items():
        figures = result["labels"]["all"][kind]
        held[f"{kind} recall >= {recall}"] = figures["recall"]["share"] >= recall
        held[f"{kind} precision >= {precision}"] = figures["precision"]["share"] >= precision
        if kind in result["made"]:
            held[f"{kind} recall >= {recall}, made"] = result["made"][kind]["share"] >= recall
    held["false alarms < 1 %"] = all(figures["share"] < 0.01 for figures in result["false_alarms"].values())
    held["phone alarms on bare numbers < 1 %"] = result["phone_curve"]["alarms_on_random_numbers"]["bare"]["share"] < 0.01
    many = result["long_and_many"]
    held["long and multi-turn"] = many["filler_alarms"] == 0 and many["long_texts"]["share"] == many["first_of_six_turns"]["share"] == 1
    return held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--shared", type=Path, default=Path(os.environ.get("HYBRID_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--made", type=int, default=400, help="made values of each kind")
    options = parser.parse_args()
    data = options.data or options.shared / "data" / "privacy" / "pii_spans_half.jsonl"
    rows = [json.loads(line) for line in data.read_text(encoding="utf-8").splitlines() if line.strip()]
    policy = Policy.parse(EVERY_KIND)
    parts = {"all": rows, "even (tuned on)": [r for r in rows if r["id"] % 2 == 0], "odd": [r for r in rows if r["id"] % 2]}
    labels = {name: on_labels(part, policy) for name, part in parts.items()}
    result: dict[str, Any] = {
        "data": data.name,
        "rows": len(rows),
        "labels": labels,
        "made": on_made(policy, options.made),
        "phones_by_evidence": {name: phones_by_evidence(part, policy) for name, part in parts.items()},
        "phone_curve": phone_curve(policy, options.made),
        "false_alarms": false_alarms(policy, 2 * options.made),
        "long_and_many": long_and_many(rows, policy),
        "names": {
            "without a recogniser": {kind: figures for kind, figures in labels["all"].items() if kind in NAMES},
            "with presidio": with_recogniser(rows),
        },
    }
    result["bars"] = bars(result)
    print(json.dumps(result, ensure_ascii=False) if options.json else table(result))


def table(result: Mapping[str, Any]) -> str:
    def shown(figure: Mapping[str, Any]) -> str:
        if figure["share"] is None:
            return f"{'-':>28}"
        return f"{figure['share']:7.3f} ({figure['hits']}/{figure['of']}) {figure['ci95'][0]:.3f}-{figure['ci95'][1]:.3f}"

    def line(name: str, *figures: Mapping[str, Any]) -> str:
        return f"{name:<34}" + "  ".join(map(shown, figures))

    lines = []
    for part, kinds in result["labels"].items():
        lines += [f"\nlabelled, {part}: recall, precision", *(line(kind, f["recall"], f["precision"]) for kind, f in kinds.items())]
    for name in ("made", "false_alarms"):
        lines += [f"\n{name}", *(line(kind, f) for kind, f in result[name].items())]
    lines += ["\nphones, labelled, by what tells them", *(line(name, f) for name, f in result["phones_by_evidence"]["all"].items())]
    curve = result["phone_curve"]
    lines += ["\nrandom ten digits that the library calls valid", *(line(f"+ {f['region']}", f["valid"]) for f in curve["library_alone"])]
    for name in ("alarms_on_random_numbers", "found_of_valid_us_numbers"):
        lines += [f"\n{name}", *(line(evidence, f) for evidence, f in curve[name].items())]
    lines += ["\nlong and multi-turn", json.dumps(result["long_and_many"])]
    lines += ["\nnames with presidio", json.dumps(result["names"]["with presidio"])]
    lines += ["\nbars", *(f"{'held  ' if held else 'MISSED'}  {name}" for name, held in result["bars"].items())]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
