"""A server on a thread of its own: nothing that goes wrong there is lost."""

import urllib.request

import pytest
from hybrid.cloud.engine.frontend import Frontend
from hybrid.cloud.engine.scripted import Script, ScriptedEngine
from hybrid.cloud.server.settings import ServerSettings
from hybrid.cloud.server.threaded import ThreadedServer, serve_on_thread
from hybrid.shared_protocol.errors import ConfigError
from hybrid.tests.support.byte_model import byte_model


async def open_frontend() -> Frontend:
    return Frontend(byte_model(64), ScriptedEngine(Script([b"x"])))


def test_it_answers_until_it_is_stopped_which_may_be_twice() -> None:
    with serve_on_thread(open_frontend) as server:
        with urllib.request.urlopen(server.url + "/health") as answer:
            assert answer.status == 200
        server.stop()
        with pytest.raises(OSError):
            urllib.request.urlopen(server.url + "/health")


def test_what_keeps_it_from_listening_is_raised_at_the_start() -> None:
    async def broken() -> Frontend:
        raise ConfigError("no model")

    with pytest.raises(ConfigError, match="no model"), serve_on_thread(broken):
        pass
    with serve_on_thread(open_frontend) as server:
        taken = ServerSettings(port=int(server.url.rpartition(":")[2]))
        with pytest.raises(ConfigError, match="cannot listen"), serve_on_thread(open_frontend, taken):
            pass


def test_what_goes_wrong_later_is_raised_at_the_stop() -> None:
    async def fragile() -> Frontend:
        frontend = await open_frontend()

        async def close() -> None:
            raise RuntimeError("it broke while it closed")

        frontend.client.close = close  # type: ignore[method-assign]
        return frontend

    server = ThreadedServer(fragile, ServerSettings())
    server.start()
    with pytest.raises(RuntimeError, match="broke while it closed"):
        server.stop()
    server.stop()
