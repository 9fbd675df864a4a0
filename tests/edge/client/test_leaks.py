"""What a prompt holds is found nowhere else: not in errors, logs, attempts, the quota's file, or what is printed of objects (row H69)."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path

import pytest
from hybrid.edge.transport.cloud import CloudClient
from hybrid.edge.transport.link import LoopbackLink
from hybrid.shared_protocol import errors, frames
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.scripted_client import TO_CLOUD, ask, client_of, client_of_several, failing, stream, well
from hybrid.tests.support.scripted_server import CLOSE, Received, Script, chunk, response, sse_head

SECRETS = ("jane.roe@example.com", "+44 20 7946 0958", "4111 1111 1111 1111", "a purple walrus")
PROMPT = [{"role": "user", "content": f"Tell {', '.join(SECRETS)} that I am late."}]
OPEN = TO_CLOUD + '[privacy]\nemail = "public"\nphone = "public"\ncard = "public"\n'  # so that it is sent at all


def echoing(status: int) -> object:
    """A server that repeats what it was sent, as some do."""

    def answer(request: Received) -> Script:
        if request.method == "GET":
            return failing()(request)
        said = request.json()["messages"][0]["content"]  # type: ignore[index]
        return [response(status, {"error": {"message": f"cannot serve {said!r}", "type": said, "param": said, "code": said}})]

    return answer


async def test_no_error_log_attempt_or_file_holds_a_word_of_the_prompt(
    smollm2: Model, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[str] = []
    broken = {"cut": failing(sse_head(), chunk("x "), CLOSE), "b": failing(response(503, b""))}
    file = tmp_path / "quota.json"
    for edge in (None, smollm2):
        for answers in (broken, {f"echo{status}": echoing(status) for status in (500, 503, 429)}, {"one": echoing(400)}):
            options = {"quota_file": file, "user": "jane.roe@example.com", "tenant": "a purple walrus"}
            async with client_of_several(edge, OPEN + '[fallback]\nmid_stream = "restart"', answers, **options) as (client, _):
                for way in (ask, stream):
                    try:
                        answer = await way(client, PROMPT)
                        info = answer.hybrid if not isinstance(answer, list) else answer[-1].hybrid
                        assert info is not None
                        seen.append(repr([info.attempts, info.rule, info.reason]))
                    except errors.HybridError as error:
                        seen += ["".join(traceback.format_exception(error)), repr(error), error.code, str(error.param)]
                seen.append(repr(client._services.clouds.targets))
    seen += [caplog.text, file.read_text(), *capfd.readouterr()]
    assert len(seen) > 12
    for secret in SECRETS:
        assert [text for text in seen if secret in text] == [], secret


@pytest.mark.parametrize("code", ["unavailable", "invalid_request", "no such code"])
async def test_what_a_cloud_says_over_the_link_holds_no_word_of_the_prompt(
    smollm2: Model, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    said = str(PROMPT[0]["content"])

    async def handle(frame: frames.DeviceFrame) -> list[frames.CloudFrame]:
        if isinstance(frame, frames.Hello):
            return [frames.CloudHello(frames.VERSION, frames.Limits())]
        return [frames.Error(code, f"cannot serve {said!r}")]

    async def open_link(*_: object) -> LoopbackLink:
        return LoopbackLink(handle)

    monkeypatch.setattr(CloudClient, "open_link", open_link)
    drafting = OPEN.replace('mode = "off"', 'mode = "always"\ndraft_below = 1.0') + "[fallback]\nattempts = 1\nretries = 0\n"
    async with client_of(smollm2, drafting, well) as (client, _):
        with pytest.raises(errors.HybridError) as raised:
            await ask(client, PROMPT)
    told = "".join(traceback.format_exception(raised.value))
    assert [secret for secret in SECRETS if secret in told] == []
