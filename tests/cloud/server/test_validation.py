"""Bad requests: each is a typed error in one envelope, small, and without anything of the prompt."""

from hybrid.tests.cloud.server.conftest import USER, Start

UNSERVED = [
    ("tools", [{"type": "function", "function": {"name": "f"}}]),
    ("tools", []),
    ("tool_choice", "required"),
    ("response_format", {"type": "json_object"}),
    ("logit_bias", {"5": 1}),
    ("frequency_penalty", 0.5),
    ("presence_penalty", -1),
    ("functions", [{"name": "f"}]),
    ("modalities", ["text", "audio"]),
    ("reasoning_effort", "high"),
    ("parallel_tool_calls", False),
    ("prediction", {"type": "content", "content": "x"}),
]
FORMS = [
    ("guided_json", {"type": "object"}),
    ("guided_regex", "(a|b)"),
    ("guided_choice", ["yes", "no"]),
    ("guided_grammar", 'root ::= "a"'),
    ("structured_outputs", {"json": {"type": "object"}}),
    ("structural_tag", "{}"),
    ("grammar", 'root ::= "a"'),
    ("json_schema", {"type": "object"}),
    ("regex", "("),
    ("ebnf", 'root ::= "a"'),
    ("response_format", {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "string", "pattern": "^{2}a"}}}),
    ("bad_words", ["never"]),
    ("allowed_token_ids", [5]),
    ("min_tokens", 3),
]
HARMLESS = [
    ("tools", None),
    ("tool_choice", "auto"),
    ("response_format", {"type": "text"}),
    ("logit_bias", {}),
    ("frequency_penalty", 0),
    ("presence_penalty", 0.0),
    ("modalities", ["text"]),
    ("n", None),
    ("stop", None),
    ("logprobs", False),
    ("user", "someone"),
    ("metadata", {"a": "b"}),
    ("store", True),
    ("service_tier", "flex"),
    ("temperature", 2),
    ("stop", [f"s{i}" for i in range(16)]),
]
WRONG = [
    ("messages", [], "messages"),
    ("messages", {}, "messages"),
    ("messages", "hi", "messages"),
    ("messages", None, "messages"),
    ("messages", [123], "messages.0"),
    ("messages", [{}], "messages.0.role"),
    ("messages", [{"role": 123, "content": "x"}], "messages.0.role"),
    ("messages", [{"role": "robot", "content": "x"}], "messages.0.role"),
    ("messages", [{"role": "user", "content": 123}], "messages.0.content"),
    ("messages", [{"role": "user", "content": None}], "messages.0.content"),
    ("messages", [{"role": "user"}], "messages.0.content"),
    ("messages", [{"role": "user", "content": []}], "messages.0.content"),
    ("messages", [{"role": "user", "content": [{"type": "text", "text": 5}]}], "messages.0.content.0.text"),
    ("messages", [{"role": "user", "content": [{"type": "hologram"}]}], "messages.0.content.0.type"),
    ("messages", [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}], "messages.0.content.0.type"),
    ("messages", [{"role": "tool", "content": "x", "tool_call_id": "1"}], "messages.0.role"),
    ("messages", [{"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}], "messages.0.tool_calls"),
    ("max_tokens", 0, "max_tokens"),
    ("max_tokens", -1, "max_tokens"),
    ("max_tokens", "5", "max_tokens"),
    ("max_tokens", 1.5, "max_tokens"),
    ("max_tokens", True, "max_tokens"),
    ("max_completion_tokens", 0, "max_completion_tokens"),
    ("n", 0, "n"),
    ("n", 1000, "n"),
    ("temperature", -0.1, "temperature"),
    ("temperature", 2.1, "temperature"),
    ("temperature", "hot", "temperature"),
    ("top_p", 0, "top_p"),
    ("top_p", 1.1, "top_p"),
    ("top_k", -2, "top_k"),
    ("min_p", 2, "min_p"),
    ("seed", 2**63, "seed"),
    ("seed", "7", "seed"),
    ("stop", "", "stop"),
    ("stop", ["a", ""], "stop"),
    ("stop", [f"s{i}" for i in range(17)], "stop"),
    ("stop", 5, "stop"),
    ("stop", ["a", "x" * 1025], "stop"),
    ("stop_token_ids", list(range(1025)), "stop_token_ids"),
    ("logprobs", 5, "logprobs"),
    ("top_logprobs", 2, "top_logprobs"),
    ("stream", "yes", "stream"),
    ("stream_options", {}, "stream_options"),
    ("stream_options", {"include_usage": True}, "stream_options"),
    ("cache_salt", "", "cache_salt"),
]


async def test_a_field_that_is_not_served_yet_is_refused_by_name(start: Start) -> None:
    bench = await start()
    for name, value in UNSERVED:
        answer = await bench.chat(**{name: value})
        assert answer.status == 400
        assert answer.error["code"] == "unsupported_parameter"
        assert answer.error["param"] == name
    assert bench.engine.added == []


async def test_a_form_that_cannot_be_held_to_is_refused_under_every_name_and_never_answered_freely(start: Start) -> None:
    bench = await start()
    for name, value in FORMS:
        for answer in (await bench.chat(**{name: value}), await bench.complete(prompt="xx", **{name: value})):
            assert (answer.status, answer.error["code"], answer.error["param"]) == (400, "unsupported_parameter", name)
    assert bench.engine.added == []
    assert (await bench.chat(bad_words=[], min_tokens=0, grammar="")).status == 200


async def test_values_that_change_nothing_are_accepted(start: Start) -> None:
    bench = await start()
    for name, value in HARMLESS:
        answer = await bench.chat(**{name: value})
        assert answer.status == 200, name
        assert "x-hybrid-ignored" not in answer.headers


async def test_a_wrong_field_is_named_by_its_dotted_path(start: Start) -> None:
    bench = await start()
    for name, value, param in WRONG:
        answer = await bench.chat(**{name: value})
        assert answer.status == 400, (name, value)
        assert answer.error["type"] == "invalid_request_error"
        assert answer.error["param"] == param
        assert len(answer.raw) < 1_000
    assert bench.engine.added == []


async def test_top_logprobs_go_up_to_twenty(start: Start) -> None:
    bench = await start()
    assert (await bench.chat(logprobs=True, top_logprobs=20)).status == 200
    assert (await bench.chat(logprobs=True, top_logprobs=21)).error["param"] == "top_logprobs"


async def test_fields_without_effect_are_named_in_a_header(start: Start) -> None:
    bench = await start()
    answer = await bench.chat(
        keep_alive=5,
        typo_tokens=9,
        nothing=None,
        stream=True,
        stream_options={"include_obfuscation": False},
        messages=[{"role": "user", "content": "x", "colour": "red"}],
    )
    assert answer.status == 200
    assert answer.headers["x-hybrid-ignored"] == "keep_alive, messages.colour, stream_options.include_obfuscation, typo_tokens"


async def test_field_names_cannot_break_a_header(start: Start) -> None:
    bench = await start()
    answer = await bench.chat(**{"a\r\nset-cookie: b": 1, "é": 2, "x" * 100: 3} | {f"k{i}": 1 for i in range(50)})
    assert answer.status == 200
    header = answer.headers["x-hybrid-ignored"]
    assert "set-cookie" not in answer.headers
    assert header.startswith("?, k0")
    assert len(header) < 200


async def test_a_message_of_the_assistant_may_be_sent_back_as_the_openai_client_dumps_it(start: Start) -> None:
    bench = await start()
    reply = {
        "role": "assistant",
        "content": "Hi",
        "refusal": None,
        "annotations": [],
        "audio": None,
        "function_call": None,
        "tool_calls": None,
    }
    answer = await bench.chat(messages=[*USER, reply, *USER])
    assert answer.status == 200
    assert "x-hybrid-ignored" not in answer.headers


async def test_unknown_routes_and_wrong_methods_have_the_same_envelope(start: Start) -> None:
    bench = await start()
    missing = await bench.get("/v1/nothing")
    assert (missing.status, missing.error["code"]) == (404, "not_found")
    wrong = await bench.get("/v1/chat/completions")
    assert (wrong.status, wrong.error["code"]) == (405, "method_not_allowed")
    assert wrong.headers["allow"] == "POST"
    assert (await bench.call("PUT", "/health")).headers["allow"] == "GET, HEAD"
    assert (await bench.get("/v1/models/")).status == 404
    assert (await bench.get("/v1/chat/completions/../../../etc/passwd")).status == 404


async def test_head_is_answered_as_get_without_the_body(start: Start) -> None:
    bench = await start()
    for path in ("/health", "/ready", "/v1/models", "/metrics", "/openapi.json"):
        found, head = await bench.get(path), await bench.call("HEAD", path)
        assert (head.status, head.raw) == (200, b"")
        assert head.headers["content-type"] == found.headers["content-type"]
    refused = await bench.call("HEAD", "/v1/completions")
    assert (refused.status, refused.raw) == (405, b"")


async def test_an_unknown_model_is_a_404_and_a_missing_one_is_fine(start: Start) -> None:
    bench = await start()
    answer = await bench.chat(model="gpt-9")
    assert answer.status == 404
    assert (answer.error["code"], answer.error["param"]) == ("model_not_found", "model")
    assert (await bench.chat(model="bytes/test")).status == 200
    assert (await bench.chat(model=None)).status == 200


async def test_odd_model_names_are_told_as_such_and_the_next_request_is_served(start: Start) -> None:
    """Row G63: names that others read a router or a threshold out of."""
    bench = await start()
    for name in ("router", "router-x", "router-mf-nan", "router-mf-1.5", "a/b/c", "..", "nan", "\x00", "Modell für alles", "x" * 50_000):
        answer = await bench.chat(model=name)
        assert answer.status in (400, 404), name[:20]
        assert answer.error["param"] == "model" and len(answer.raw) < 2_000
    for wrong in (1.5, True, [], ["router"], {}):
        answer = await bench.chat(model=wrong)
        assert (answer.status, answer.error["param"]) == (400, "model"), wrong
    assert bench.engine.added == []
    assert (await bench.chat()).status == 200


async def test_a_chat_with_tools_is_refused_for_that_reason_and_the_model_answers_on(start: Start) -> None:
    """Row G66: a client that passes tools is told of the tools, and nothing else."""
    bench = await start()
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    for stream in (False, True):
        assert (await bench.chat(stream=stream)).status == 200
        refused = await bench.chat(stream=stream, tools=tools)
        assert (refused.status, refused.error["code"], refused.error["param"]) == (400, "unsupported_parameter", "tools")
        assert "tools" in refused.error["message"] and "model" not in refused.error["message"]
        assert (await bench.chat(stream=stream)).status == 200
