"""The JSON schema of a policy file, for editors and CI, made from the structs that check it."""

from __future__ import annotations

from typing import Any

import msgspec

from .policy import Policy, default_tables


def policy_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a policy file as a document: every key optional, with its default, range and meaning."""
    schema = msgspec.json.schema(Policy)
    defaults = default_tables()
    tables = schema["$defs"]
    policy = tables["Policy"]
    policy.pop("required", None)  # a file names only what it changes
    for name, values in defaults.items():
        if "$ref" not in policy["properties"][name]:
            continue
        table = tables[policy["properties"][name]["$ref"].rpartition("/")[2]]
        del table["required"]
        for key, value in values.items():
            table["properties"][key]["default"] = value
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Policy of Hybrid's router", **schema}
