"""The page around the parts: its head, its style for light and dark, and small pieces of HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

# After Okabe and Ito 2008: told apart by people who see fewer colours.
ROUTE_COLOURS: Mapping[str, str] = {
    "edge": "#009e73",
    "cascade": "#e69f00",
    "speculative": "#cc79a7",
    "cloud": "#3b8fd0",
    "refuse": "#d55e00",
}

_STYLE = """
:root { color-scheme: light dark; --paper: #fbfbf9; --card: #fff; --ink: #1f2428; --soft: #667078; --line: #dfe3e6; --ours: #c2410c; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171a; --card: #1c2024; --ink: #e6e8ea; --soft: #98a2ab; --line: #333a40; --ours: #ff9a57; }
}
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 66rem; padding: 2rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, sans-serif }
h1 { font-size: 1.5rem; margin: 0 } h2 { font-size: 1.05rem; margin: 0 0 .25rem }
header p, .note { color: var(--soft); margin: .25rem 0 1rem; max-width: 48rem }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1.1rem 1.25rem; margin: 1rem 0 }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 1rem; margin: 1rem 0 } .pair section { margin: 0 }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .75rem; margin: 1.25rem 0 }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .7rem .9rem }
.tile b { display: block; font-size: 1.45rem; font-weight: 650; font-variant-numeric: tabular-nums }
.tile span { color: var(--soft); font-size: .85rem }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums } .scroll { overflow-x: auto }
th { text-align: left; color: var(--soft); font-weight: 500; font-size: .85rem }
th, td { padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
td.number, th.number { text-align: right; white-space: nowrap }
tr.ours td { color: var(--ours); font-weight: 600 } code { font: .85em ui-monospace, Menlo, Consolas, monospace }
.bar { min-width: 2px; height: .7rem; border-radius: 3px; margin-top: .4rem } td.name { width: 38% } td.length { width: 45% }
.badge { color: #fff; border-radius: 4px; padding: .05rem .45rem; font-size: .82rem; white-space: nowrap }
.passed { color: #009e73 } .failed { color: #d55e00; font-weight: 600 }
svg { width: 100%; height: auto; display: block } svg text { fill: var(--soft); font-size: 12px } svg .grid { stroke: var(--line) }
svg .strong { fill: var(--ink) } svg .ours { stroke: var(--ours) } svg .oursfill { fill: var(--ours) } svg .ink { stroke: var(--soft) }
.flow { display: flex; flex-wrap: wrap; gap: .5rem 1.4rem }
.step { position: relative; border: 1px solid; border-left-width: 5px; border-radius: 6px; padding: .3rem .6rem;
  font: .82em ui-monospace, monospace }
.step span { color: var(--soft) } .step + .step::before { content: "→"; position: absolute; left: -1.35rem; color: var(--soft) }
.key { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; color: var(--soft); font-size: .85rem; margin-top: .4rem }
.key i { display: inline-block; width: 1.1rem; height: .6rem; border-radius: 2px; margin-right: .4rem }
"""


def page(title: str, subtitle: str, parts: Sequence[str]) -> str:
    """`parts`: HTML that is escaped already."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body><header><h1>{escape(title)}</h1><p>{escape(subtitle)}</p></header>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def section(title: str, note: str, body: str) -> str:
    return f'<section><h2>{escape(title)}</h2><p class="note">{escape(note)}</p>{body}</section>'


def pair(*sections: str) -> str:
    return f'<div class="pair">{"".join(sections)}</div>'


def tiles(found: Sequence[tuple[str, str]]) -> str:
    """(name, value) of the few figures that come first."""
    return f'<div class="tiles">{"".join(f"<div class=tile><span>{escape(n)}</span><b>{escape(v)}</b></div>" for n, v in found)}</div>'


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = (), marked: Sequence[int] = ()) -> str:
    """Cells are HTML. `numbers`: columns that stand to the right; `marked`: rows that stand out."""

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(f"<{tag}{' class=number' if at in numbers else ''}>{cell}</{tag}>" for at, cell in enumerate(row))

    body = "".join(f"<tr{' class=ours' if at in marked else ''}>{cells('td', row)}</tr>" for at, row in enumerate(rows))
    names = cells("th", [escape(name) for name in head])
    return f'<div class="scroll"><table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>'


def badge(route: str) -> str:
    return f'<span class="badge" style="background:{ROUTE_COLOURS.get(route, "#667078")}">{escape(route)}</span>'


def key(entries: Sequence[tuple[str, str]]) -> str:
    """(name, colour)."""
    return f'<div class="key">{"".join(f"<span><i style=background:{colour}></i>{escape(name)}</span>" for name, colour in entries)}</div>'
