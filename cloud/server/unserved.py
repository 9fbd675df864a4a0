"""Fields that are not served yet and would change the answer, with the values that change nothing and are therefore accepted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...shared_protocol.errors import UnsupportedParameter

SILENT = frozenset({"user", "metadata", "store", "service_tier"})  # meant for the provider's books, not for the answer

# other servers' names for what an answer must or must not be: free text in its place would be a wrong answer with status 200
_FORMS: dict[str, tuple[Any, ...]] = {
    "allowed_token_ids": (),
    "bad_words": ([],),
    "ebnf": (),
    "grammar": ("",),
    "guided_choice": (),
    "guided_grammar": (),
    "guided_json": (),
    "guided_regex": (),
    "json_schema": (),
    "min_tokens": (0,),
    "regex": (),
    "structural_tag": (),
    "structured_outputs": (),
}
_BOTH: dict[str, tuple[Any, ...]] = _FORMS | {
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "response_format": ({"type": "text"},),
}
CHAT_UNSERVED: dict[str, tuple[Any, ...]] = _BOTH | {
    "audio": (),
    "function_call": ("none",),
    "functions": (),
    "modalities": (["text"],),
    "parallel_tool_calls": (True,),
    "prediction": (),
    "reasoning_effort": ("none",),
    "tool_choice": ("none", "auto"),
    "tools": (),
    "verbosity": ("medium",),
    "web_search_options": (),
}
COMPLETION_UNSERVED: dict[str, tuple[Any, ...]] = _BOTH | {
    "best_of": (1,),
    "suffix": ("",),
}
MESSAGE_UNSERVED: dict[str, tuple[Any, ...]] = {
    "audio": (),
    "function_call": (),
    "tool_calls": ([],),
}


def refuse(fields: Mapping[str, Any], unserved: Mapping[str, tuple[Any, ...]], prefix: str = "") -> None:
    """Raise UnsupportedParameter for the first field whose value would change the answer; null is always the default."""
    for name, harmless in unserved.items():
        value = fields.get(name)
        if value is not None and value not in harmless:
            raise UnsupportedParameter(f"{name} is not served yet", param=prefix + name, hint="leave it out")
