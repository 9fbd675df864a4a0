"""What honest templates write is what plain Jinja2 writes: the fuel changes no output. And there is one place that renders."""

from __future__ import annotations

import re
from pathlib import Path

import hybrid
import jinja2
import pytest
from hybrid.shared_protocol.template.render import render

MESSAGES = [{"role": "system", "content": "héllo"}, {"role": "user", "content": "abc"}, {"role": "user", "content": "x y"}]
TEMPLATES = [
    "{{ 1 < 2 < 3 }}{{ 1 not in [1,2] }}{{ 'a' in {'a':1} }}{{ 3 > 2 > 5 }}",
    "{% macro d(t) %}<{{ t }}>{{ caller() }}{% endmacro %}{% call d('x') %}in{% endcall %}",
    (
        "{% for m in messages %}{% if loop.changed(m.role) %}{{ loop.index }}{% endif %}{{ loop.first }}{{ loop.last }}"
        "{{ loop.length }}{{ loop.revindex }}{{ loop.previtem.role if loop.previtem is defined }}{{ loop.nextitem }}"
        "{{ loop.cycle('a','b') }}{% else %}none{% endfor %}"
    ),
    "{% set x | upper %}abc{% endset %}{{ x }}{% filter trim %}  y {% endfilter %}",
    "{{ messages[0].content[1:3] }}{{ messages[-1]['content'][::-1] }}{{ messages[1:] | length }}",
    "{% for k, v in {'a': 1, 'b': [1,2]}.items() %}{{ k }}={{ v }};{% endfor %}",
    "{{ 'x' if messages else 'y' }}{{ none }}{{ true }}{{ 1.5 }}{{ [1,'a',none] }}{{ (1,) }}{{ {'a': 1} }}",
    "{{ 7 // 2 }}{{ 7 % 3 }}{{ 2 ** 10 }}{{ 7 / 2 }}{{ -3 }}{{ 'ab' * 2 }}{{ [1] + [2] }}{{ 'a' ~ 1 ~ none }}",
    "{{ undefined_thing }}|{{ undefined_thing is defined }}|{{ messages[0].foo | default('d') }}|{{ messages[5] is defined }}",
    "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ range(3) | list }}{{ range(1, 10, 3) | join('-') }}",
    (
        "{{ messages | map(attribute='content') | join('|') }}"
        "{{ messages | rejectattr('role', 'equalto', 'user') | map(attribute='role') | list }}"
    ),
    (
        "{{ [3,1,2] | sort | reverse | list }}{{ [1,1,2] | unique | list }}{{ [1,2] | sum }}{{ ['b','A'] | sort }}"
        "{{ [1,5] | max }}{{ {'b':1,'a':2} | dictsort }}"
    ),
    (
        "{{ 'hello world' | title }}{{ 'abc' | capitalize }}"
        "{{ ' a ' | trim }}|{{ 'a' | center(5) }}|{{ 'a\nb\n\nc' | indent(2) }}|"
        "{{ 'aXa' | replace('a','b',1) }}|{{ 'a\nb' | indent(2, true) }}"
    ),
    "{{ '5' | int + 1 }}{{ 'x' | int(7) }}{{ '1.5' | float }}{{ 2.567 | round(2) }}{{ 2.5 | round }}{{ -1 | abs }}",
    (
        "{{ 'a,b'.split(',') }}{{ 'abc'.startswith('a') }}{{ 'abc'.find('c') }}{{ ' x'.strip() }}{{ 'a'.join(['1','2']) }}"
        "{{ 'abc'.upper() }}{{ '{} {b}'.format(1, b=2) }}"
    ),
    (
        "{% set ns = namespace(c=0) %}{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}"
        "{% set ns.c = ns.c + 1 %}{% endfor %}{{ ns.c }}"
    ),
    "{% for m in messages if m.role == 'user' %}{{ loop.index }}{{ m.content }}{% endfor %}",
    (
        "{{ messages[0] is mapping }}{{ messages is sequence }}{{ 'a' is string }}{{ 1 is number }}{{ none is none }}"
        "{{ messages is iterable }}{{ 4 is divisibleby 2 }}{{ 'A' is upper }}{{ 1 is eq 1 }}{{ 1 is in [1] }}"
        "{{ true is true }}"
    ),
    "{% if messages[0]['role'] == 'system' and messages | length > 1 or false %}A{% elif not tools %}B{% else %}C{% endif %}",
    "  {%- if true -%}  x  {%- endif %}\n\n  {% if true %}\n  y\n  {% endif %}\n",
    "{% macro m(a, b=2) %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1) }}{{ m(1, 3, 4, c=5) }}",
    "{% raw %}{{ x }}{% endraw %}{# c #}{{ '\\n' }}{{ \"it's\" }}",
    (
        "{{ messages | first }}{{ (messages | last).role }}{{ messages | length }}{{ 'abc' | first }}"
        "{{ messages[0].items() | list }}{{ messages[0] | items | list }}{{ messages[0].get('zzz', 'q') }}"
        "{{ messages[0].keys() | list }}"
    ),
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% for a, b in [(1,2),(3,4)] %}{{ a }}{{ b }}{% endfor %}",
    (
        "{{ '%s and %05.2f' % ('a', 1.5) }}{{ '%d' | format(3) }}{{ dict(a=1) }}{{ 'abc' | list }}{{ 'abc'|reverse }}"
        "{{ 'a b'|string|length }}"
    ),
]


@pytest.mark.parametrize("template", TEMPLATES)
def test_fuel_changes_no_output(template: str) -> None:
    plain = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    expected = plain.from_string(template).render(messages=MESSAGES, tools=None, add_generation_prompt=True)
    assert render(template, MESSAGES).text == expected


def test_nothing_outside_the_template_modules_touches_jinja() -> None:
    root = Path(hybrid.__file__).parent
    users = [
        path.relative_to(root) for path in root.rglob("*.py") if re.search(r"^\s*(import|from) jinja2", path.read_text(), re.MULTILINE)
    ]
    ours = {str(path) for path in users if path.parts[0] not in ("tests", ".venv", "build")}
    assert ours and all(path.startswith("shared_protocol/template/") for path in ours), ours
