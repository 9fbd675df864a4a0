"""Chat templates: whatever they are, rendering ends, with text or with a typed error, and users' words stay literal."""

from __future__ import annotations

from datetime import UTC, datetime

from hybrid.shared_protocol.errors import TemplateError
from hybrid.shared_protocol.template.fuel import RenderLimits
from hybrid.shared_protocol.template.render import render
from hybrid.tests.support.gguf_writer import CHATML

LIMITS = RenderLimits(fuel=20_000, max_output=50_000)
SPECIALS = ("<|im_start|>", "<|im_end|>", "</s>")
MESSAGES = (
    {"role": "system", "content": "Be <|im_end|> brief."},
    {"role": "user", "content": "Hi </s>\n 1 2 3"},
    {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1, 2.5, None, True, "x"]}}}]},
    {"role": "tool", "content": "{}", "name": "f"},
)
TOOLS = ({"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}},)
NOW = datetime(2026, 2, 3, tzinfo=UTC)
_SEEDS = (
    CHATML,
    "{%- for m in messages if m.role != 'system' -%}{{ loop.index0 ~ m['content']|trim }}{% else %}none{%- endfor -%}",
    "{% set ns = namespace(n=0, first=true) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}",
    "{% macro show(x, y='a') %}[{{ x }}{{ y }}]{% endmacro %}{% for m in messages %}{{ show(m.role) }}{% endfor %}",
    "{% if tools is not none %}{{ tools | tojson(indent=2) }}{% endif %}{{ bos_token }}{{ messages[0]['content'].split(' ')[-1] }}",
    "{% if messages[0].role == 'user' %}{{ raise_exception('Only ' + messages[0].role) }}{% endif %}{{ strftime_now('%d %b %Y') }}",
    "{% for k, v in messages[2].tool_calls[0].function.arguments.items() %}{{ k }}={{ v | string | upper }},{% endfor %}",
    "{{ messages | map(attribute='role') | join(', ') }}{{ messages | selectattr('role', 'equalto', 'user') | list | length }}",
    "{{ 'x' * 10 }}{{ '%s-%d' % ('a', 3) }}{{ 'a'.center(9) }}{{ ' b '|indent(4) }}{{ 'aXb'|replace('X', '<|im_end|>') }}",
    "{{ [1, 2]|sum ** 3 }}{{ 7 // 2 - 1.5e3 }}{{ -messages|length % 3 }}{{ 1 < 2 <= 2 }}{{ 'a' in 'abc' }}{{ x is undefined }}",
    "{% for i in range(5) recursive %}{{ i }}{% if i is even %}{{ loop(range(i)) }}{% endif %}{% endfor %}",
    "{% set text %}{% filter upper %}{{ messages[1].content }}{% endfilter %}{% endset %}{{ text[::-1] }}{{ text|wordcount }}",
    "{% set m = messages %}{{ m[::2]|length }}{{ (m|first).role }}{{ (m|last).name }}{{ m|batch(3)|list|length }}{{ {'a': 1}|dictsort }}",
)


def run(data: bytes) -> None:
    template = data.decode("utf-8", "replace")
    try:
        rendered = render(
            template,
            MESSAGES,
            tools=TOOLS,
            bos_token="<s>",
            eos_token="</s>",
            specials=SPECIALS,
            limits=LIMITS,
            now=datetime(2026, 2, 3, tzinfo=UTC),
        )
    except TemplateError:
        return
    end = 0
    for start, stop in rendered.literal_spans:
        assert end <= start < stop <= len(rendered.text)
        end = stop
    assert len(rendered.text) <= LIMITS.max_output + sum(len(str(message)) for message in MESSAGES)


def seeds() -> list[bytes]:
    return [seed.encode() for seed in _SEEDS]
