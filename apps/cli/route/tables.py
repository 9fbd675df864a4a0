"""The reports of `test`, `diff` and `calibrate` as a person reads them on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ..output import print_table

MOST = 8  # rules are listed up to here


def show_test(body: Mapping[str, Any]) -> None:
    given = body["input"]
    click.echo(f"{given['file']}: {given['rows']} rows, {given['prompts']} different prompts, {given['outcomes']} with outcomes")
    click.echo(f"policy {body['policy']['source']} ({body['policy']['hash']})\n")
    show_shares(body["shares"])
    click.echo(f"\ncloud share {body['cloud_share']:.1%}, {body['cloud_tokens']:.0f} cloud tokens a prompt{_money(body)}")
    if "apgr" in body:
        click.echo("")
        _quality(body)
    for name, why in body["undefined"].items():
        click.echo(f"{name} is undefined: {why}")


def show_shares(shares: Mapping[str, Mapping[str, float]]) -> None:
    rows = []
    for what, found in shares.items():
        listed = list(found.items())
        rows += [(what, name, f"{share:6.1%}") for name, share in listed[:MOST]]
        if len(listed) > MOST:
            rows.append((what, f"{len(listed) - MOST} more", f"{sum(share for _, share in listed[MOST:]):6.1%}"))
    print_table(("", "", "share"), rows)


def number(value: float | None, places: int = 3) -> str:
    return "-" if value is None else f"{value:.{places}f}"


def between(pair: list[float | None] | None, places: int = 3) -> str:
    return "-" if pair is None or None in pair else f"{number(pair[0], places)} to {number(pair[1], places)}"


def _money(body: Mapping[str, Any]) -> str:
    cost = "" if body["cost"] is None else f", cost {body['cost']:.4g} a prompt"
    return cost + ("" if body["seconds"] is None else f", {body['seconds']:.2f} s a prompt")


def _quality(body: Mapping[str, Any]) -> None:
    ci = body["ci95"]
    click.echo(
        f"accuracy: policy {number(body['accuracy'])} ({between(ci['accuracy'])}), device {number(body['weak'])}, "
        f"cloud {number(body['strong'])}; PGR {number(body['pgr'])} ({between(ci['pgr'])})\n"
    )
    names = sorted(body["apgr"], key=lambda name: body["apgr"][name] or 0.0)
    print_table(
        ("router", "APGR", "95 %", "CPT50", "CPT80", "AIQ"),
        [
            (name, number(body["apgr"][name]), between(ci[name]), *(number(body[kind][name]) for kind in ("cpt50", "cpt80", "aiq")))
            for name in names
        ],
    )
    click.echo("")
    print_table(("APGR", "difference", "95 %"), [(name, number(found[0]), between(found[1:])) for name, found in body["paired"].items()])
    click.echo("")
    print_table(
        ("does the device fail?", "ours", "95 %"),
        [(name, number(body[kind]), between(ci[kind])) for name, kind in _JUDGED],
    )


_JUDGED = (("ECE", "ece"), ("Brier score", "brier"), ("AUROC", "auroc"), ("AURC", "aurc"))
