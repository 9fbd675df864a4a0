"""No prompt text in logs, metrics, headers or errors; metrics whose labels are bounded."""

import asyncio
import logging
import re

import pytest
from hybrid.cloud.engine.scripted import Script
from hybrid.cloud.server.generation import Service
from hybrid.tests.cloud.server.conftest import Start

MAIL, PHONE, CARD = "ada@example.org", "+44 20 7946 0958", "4111 1111 1111 1111"
SECRETS = (MAIL, PHONE, CARD, "7946 0958", "example.org", "4111 1111")
PROMPT = f"Write to {MAIL}, call {PHONE}, pay with {CARD}."


async def test_a_prompt_is_in_no_log_metric_header_or_error(
    start: Start, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    bench = await start(lambda add: Script([b"ok"], finish="error" if add.params.seed == 13 else "stop", error="x"), max_model_len=200)
    message = {"role": "user", "content": PROMPT}
    bodies = [
        {"messages": [message]},
        {"messages": [message], "seed": 13},
        {"messages": [message], "seed": 13, "stream": True},
        {"messages": [message, message]},  # the template refuses
        {"messages": [message | {"content": PROMPT * 10}]},  # too long
        {"messages": [message], "max_tokens": PROMPT},  # wrong types, everywhere
        {"messages": [message], "temperature": PROMPT},
        {"messages": PROMPT},
        {"messages": [PROMPT]},
        {"messages": [message | {"role": PROMPT}]},
        {"messages": [message | {"content": [PROMPT]}]},
        {"messages": [message | {"content": [{"type": PROMPT}]}]},
        {"messages": [message], "stop": ["", PROMPT]},
        {"messages": [message], "stream_options": PROMPT},
        {"messages": [message], "response_format": {"type": PROMPT}},
        {"messages": [message], PROMPT: PROMPT},
    ]
    answers = [await bench.post("/v1/chat/completions", body) for body in bodies]
    answers += [await bench.post(path, {"prompt": PROMPT * times}) for path in ("/v1/completions", "/tokenize") for times in (1, 10)]
    answers += [await bench.get("/" + PROMPT.replace(" ", "%20")), await bench.get("/v1/models?q=" + MAIL)]
    answers += [await bench.call("POST", "/tokenize", data=PROMPT.encode(), headers={"content-type": "application/json"})]
    assert {answer.status for answer in answers} == {200, 400, 404, 500}
    sinks = [caplog.text, *capfd.readouterr(), (await bench.get("/metrics")).raw.decode()]
    sinks += [answer.raw.decode() + str(dict(answer.headers)) for answer in answers]
    for sink in sinks:
        for secret in SECRETS:
            assert secret not in sink


async def test_a_fault_of_ours_is_logged_by_its_place_not_by_its_words(
    start: Start, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Service, asked: object) -> None:
        raise ValueError(PROMPT)

    bench = await start()
    monkeypatch.setattr(Service, "check_model", broken)
    answer = await bench.chat()
    assert (answer.status, answer.error["code"]) == (500, "internal_error")
    assert answer.headers["x-request-id"] in caplog.text
    assert "ValueError" in caplog.text
    assert "chat.py" in caplog.text
    assert MAIL not in caplog.text + answer.raw.decode()


async def test_metrics_have_vllms_names_and_count_what_happened(start: Start) -> None:
    bench = await start(b"abc")
    await bench.complete(prompt="xx", n=2)
    await bench.complete(prompt="xx", stream=True, max_tokens=2)
    text = (await bench.get("/metrics")).raw.decode()

    def value(line: str) -> float:
        found = re.search(rf"^{re.escape(line)} (\S+)$", text, re.MULTILINE)
        assert found, line
        return float(found[1])

    model = 'model_name="bytes/test"'
    assert value(f"hybrid:prompt_tokens_total{{{model}}}") == 4
    assert value(f"hybrid:generation_tokens_total{{{model}}}") == 8
    assert value(f'hybrid:request_success_total{{finished_reason="stop",{model}}}') == 2
    assert value(f'hybrid:request_success_total{{finished_reason="length",{model}}}') == 1
    assert value(f"hybrid:time_to_first_token_seconds_count{{{model}}}") == 3
    assert value(f"hybrid:inter_token_latency_seconds_count{{{model}}}") == 5
    assert value(f"hybrid:e2e_request_latency_seconds_count{{{model}}}") == 3
    assert value('hybrid:http_requests_total{method="POST",route="/v1/completions",status="200"}') == 2
    for name in (
        "num_requests_running",
        "num_requests_waiting",
        "kv_cache_usage_perc",
        "num_preemptions_total",
        "prefix_cache_queries_total",
        "prefix_cache_hits_total",
    ):
        assert value(f"hybrid:{name}{{{model}}}") == 0


async def test_what_the_engine_did_not_take_is_counted_as_an_answer_only(start: Start) -> None:
    bench = await start(Script([b"x"], finish=None), automatic=False, slots=1, max_queue=0)
    running = asyncio.create_task(bench.complete(prompt="xx"))
    await bench.settled(lambda: len(bench.engine.added) == 1)
    await bench.engine.advance(1)
    assert (await bench.complete(prompt="yyy", n=2)).status == 503
    text = (await bench.get("/metrics")).raw.decode()
    assert 'hybrid:prompt_tokens_total{model_name="bytes/test"} 2.0' in text
    assert "request_success_total{" not in text
    assert 'route="/v1/completions",status="503"} 1.0' in text
    running.cancel()
    await bench.settled(bench.idle)
    assert 'request_success_total{finished_reason="abort",model_name="bytes/test"} 1.0' in (await bench.get("/metrics")).raw.decode()


async def test_visitors_cannot_make_labels(start: Start) -> None:
    bench = await start()
    for index in range(30):
        await bench.get(f"/nowhere/{index}")
        await bench.get(f"/v1/models/made-up-{index}")
        await bench.call(f"VERB{index}", "/v1/models")
    text = (await bench.get("/metrics")).raw.decode()
    assert "made-up" not in text
    assert "nowhere" not in text
    assert len([line for line in text.splitlines() if line.startswith("hybrid:http_requests_total")]) < 6


async def test_models_version_and_description(start: Start) -> None:
    bench = await start(max_model_len=123)
    listed = (await bench.get("/v1/models")).json
    assert listed["object"] == "list"
    (model,) = listed["data"]
    assert (model["id"], model["object"], model["max_model_len"]) == ("bytes/test", "model", 123)
    assert (await bench.get("/v1/models/bytes/test")).json == model
    assert (await bench.get("/v1/models/other")).error["code"] == "model_not_found"
    version = (await bench.get("/version")).json
    assert (version["kernel_id"], version["model"]) == ("scripted-1", "bytes/test")
    described = await bench.get("/openapi.json")
    schemas = described.json["components"]["schemas"]
    assert {"ChatRequest", "ChatCompletion", "ErrorEnvelope"} <= set(schemas)
    assert set(re.findall(r'"#/components/schemas/([^"]+)"', described.raw.decode())) <= set(schemas)
    for path, operations in described.json["paths"].items():
        for operation in operations.values():
            assert [place["name"] for place in operation.get("parameters", [])] == re.findall(r"{(.+?)}", path)
    answer = described.json["paths"]["/v1/chat/completions"]["post"]["responses"]["200"]
    assert set(answer["content"]) == {"application/json", "text/event-stream"}
