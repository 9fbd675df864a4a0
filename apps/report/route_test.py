"""The page of `hybrid route test`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ...router.evaluate.assess import OURS, Assessed
from ...router.evaluate.replay import Decided
from .curve_chart import curve_chart
from .interval_chart import interval_chart
from .page import ROUTE_COLOURS, page, pair, section, table, tiles
from .reliability_chart import reliability_chart, risk_chart
from .shares_chart import share_bars, shares_over_time


def route_test_page(body: Mapping[str, Any], decided: Sequence[Decided], assessed: Assessed | None) -> str:
    """`body`: the JSON of the command. No prompt is in the page."""
    given, policy = body["input"], body["policy"]
    subtitle = f"{given['rows']} prompts of {given['file']}, policy {policy['source']} ({policy['hash']})"
    parts = [tiles(_first(body))]
    if body["gates"]:
        parts.append(section("Gates", "What must not be.", _gates(body["gates"])))
    if assessed is not None:
        parts += _quality(body, assessed)
    parts.append(
        pair(
            section("Routes", "Where the prompts go.", share_bars(body["shares"]["route"], ROUTE_COLOURS)),
            section("Reasons", "Why they go there.", share_bars(body["shares"]["reason"])),
            section("Rules", "What settled it: a stage of the router, or a rule of the policy.", share_bars(body["shares"]["rule"])),
            section("Privacy", "What may leave the device.", share_bars(body["shares"]["privacy"])),
        )
    )
    over_time = shares_over_time(decided)
    if over_time is not None:
        parts.append(section("Over time", "Shares of the routes, by the rows' own times.", over_time))
    if body["undefined"]:
        reasons = "".join(f"<li><code>{escape(name)}</code>: {escape(why)}</li>" for name, why in body["undefined"].items())
        parts.append(section("Undefined", "Figures that these rows cannot give.", f"<ul>{reasons}</ul>"))
    return page("Route test", subtitle, parts)


def _first(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = [("cloud share", f"{body['cloud_share']:.1%}")]
    if "accuracy" in body:
        found += [
            ("accuracy of the policy", number(body["accuracy"])),
            ("device alone", number(body["weak"])),
            ("cloud alone", number(body["strong"])),
        ]
        found += [("APGR of the router", number(body["apgr"][OURS])), ("calibration error", number(body["ece"]))]
    if body["cost"] is not None:
        found.append(("cost a prompt", f"{body['cost']:.4g}"))
    if body["seconds"] is not None:
        found.append(("seconds a prompt", f"{body['seconds']:.2f}"))
    return found


def _quality(body: Mapping[str, Any], assessed: Assessed) -> list[str]:
    note = (
        f"Measured on prompts held out from training ({assessed.folds} folds, equal prompts together). A router is worth what it lies "
        "above the line of chance; no router can pass the oracle, which knows the outcome."
    )
    ci = body["ci95"]
    order = sorted(body["apgr"], key=lambda name: -(body["apgr"][name] or 0.0))
    whiskers = [
        (n, body["apgr"][n], None if ci[n] is None else (ci[n][0], ci[n][1]))
        for n in order
        if body["apgr"][n] is not None and n != "oracle"
    ]
    rows = [
        (escape(n), number(body["apgr"][n]), between(ci[n]), number(body["cpt50"][n]), number(body["cpt80"][n]), number(body["aiq"][n]))
        for n in order
    ]
    mark = [order.index(OURS)]
    figures = table(("router", "APGR", "95 % interval", "CPT50", "CPT80", "AIQ"), rows, numbers=(1, 2, 3, 4, 5), marked=mark)
    pairs = table(
        ("difference in APGR", "", "95 % interval"),
        [(escape(name.replace("-", " - ", 1)), number(found[0]), between(found[1:])) for name, found in body["paired"].items()],
        numbers=(1, 2),
    )
    judged = [("calibration error (ECE)", "ece"), ("Brier score", "brier"), ("AUROC", "auroc"), ("AURC", "aurc")]
    judge = table(
        ("does the device fail?", "ours", "95 % interval"), [(n, number(body[k]), between(ci[k])) for n, k in judged], numbers=(1, 2)
    )
    charts = [
        section(
            "Is the forecast right?",
            "Each dot is a tenth of the prompts; on the line, what was expected came.",
            reliability_chart(assessed.bins),
        )
    ]
    if assessed.risk is not None:
        charts.append(
            section("What may the device keep?", "Its errors on the prompts that are expected to go best.", risk_chart(assessed.risk))
        )
    parts = [section("Quality for cost", note, curve_chart(assessed, body["cloud_share"], body["accuracy"]))]
    if whiskers:
        chart = interval_chart(whiskers, mark=OURS, at=0.5, name="APGR: .5 is chance, 1 is all of the gap")
        parts.append(
            section("Routers side by side", "Intervals of 95 %, over resampled prompts; the oracle is left out.", chart + figures + pairs)
        )
    return [*parts, pair(*charts), section("Judging the device", "Higher AUROC and lower everything else is better.", judge)]


def _gates(gates: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (
            f"<code>{escape(one['gate'])}</code>",
            number(one["value"], 4),
            "<span class=failed>failed</span>" if one["failed"] else "<span class=passed>passed</span>",
        )
        for one in gates
    ]
    return table(("gate", "value", ""), rows, numbers=(1,))


def number(value: float | None, places: int = 3) -> str:
    return "-" if value is None else f"{value:.{places}f}"


def between(found: Sequence[float | None] | None) -> str:
    return "-" if found is None or None in found else f"{number(found[0])} to {number(found[1])}"
