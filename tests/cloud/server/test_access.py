"""Keys, hosts, origins, admin routes, request ids."""

from pathlib import Path

import pytest
from hybrid.cloud.server.keys import KeyRing, keys_from_environment, read_keys
from hybrid.cloud.server.settings import ServerSettings
from hybrid.shared_protocol.errors import ConfigError
from hybrid.tests.cloud.server.conftest import Start

KEYS = {"keys": KeyRing({"anna": "secret-a", "ben": "secret-b"}, admin="secret-admin")}


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


async def test_a_key_is_needed_once_there_are_keys(start: Start) -> None:
    bench = await start(**KEYS)
    for headers in ({}, bearer("wrong"), {"x-api-key": "wrong"}, {"authorization": "Basic secret-a"}, bearer("")):
        for path in ("/v1/models", "/v1/nothing", "/version", "/openapi.json"):
            answer = await bench.get(path, headers=headers)
            assert answer.status == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert answer.error["type"] == "authentication_error"
            assert "wrong" not in answer.error["message"]
    for headers in (bearer("secret-a"), {"x-api-key": "secret-b"}, {"authorization": "bearer secret-a"}, bearer("secret-admin")):
        assert (await bench.get("/v1/models", headers=headers)).status == 200
    for path in ("/health", "/ready", "/metrics"):
        assert (await bench.get(path)).status == 200


async def test_cached_prompts_are_shared_within_one_key_only(start: Start) -> None:
    bench = await start(**KEYS)
    for headers in (bearer("secret-a"), bearer("secret-b")):
        await bench.post("/v1/completions", {"prompt": "x"}, headers=headers)
        await bench.post("/v1/completions", {"prompt": "x", "cache_salt": "blue"}, headers=headers)
    assert [add.cache_salt for add in bench.engine.added] == ["anna", "anna:blue", "ben", "ben:blue"]


async def test_without_keys_everyone_is_local(start: Start) -> None:
    bench = await start()
    await bench.complete()
    assert bench.engine.added[0].cache_salt == "local"


async def test_the_state_of_the_engine_is_for_the_admin(start: Start) -> None:
    bench = await start(**KEYS)
    assert (await bench.get("/internal/state")).status == 401
    assert (await bench.get("/internal/state", headers=bearer("secret-a"))).status == 403
    state = (await bench.get("/internal/state", headers=bearer("secret-admin"))).json
    engine = state["engine"]
    assert engine["total"] == engine["free"] + engine["cached"] + engine["used"]
    assert (engine["running"], engine["waiting"], engine["parked"]) == (0, 0, 0)


async def test_admin_routes_do_not_exist_without_an_admin_key_but_on_loopback(start: Start) -> None:
    bench = await start()
    assert (await bench.get("/internal/state")).status == 200
    keyed = await start(host="0.0.0.0", keys=KeyRing({"anna": "secret-a"}))
    answer = await keyed.get("/internal/state", headers=bearer("secret-a"))
    assert (answer.status, answer.error["code"]) == (404, "not_found")


def test_a_server_without_keys_listens_on_this_machine_only() -> None:
    with pytest.raises(ConfigError, match=r"0\.0\.0\.0"):
        ServerSettings(host="0.0.0.0")
    for host in ("127.0.0.1", "localhost", "::1", "127.0.0.2"):
        assert ServerSettings(host=host).loopback
    assert not ServerSettings(host="0.0.0.0", keys=KeyRing({"a": "b"})).loopback


def test_settings_that_could_not_work_are_refused_at_the_start() -> None:
    for origin in ("app.example", "https://", "https://app.example/page", "https://ada@app.example", "null", ""):
        with pytest.raises(ConfigError, match="origin"):
            ServerSettings(allowed_origins=(origin,))
    ServerSettings(allowed_origins=("https://app.example", "http://[::1]:3000/", "chrome-extension://abc"))
    for seconds in (-1.0, float("nan")):
        with pytest.raises(ConfigError, match="drain_s"):
            ServerSettings(drain_s=seconds)


async def test_a_foreign_name_for_this_machine_is_refused_on_every_route(start: Start) -> None:
    bench = await start()
    for host in ("evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "[evil]", ""):
        for method, path in (
            ("GET", "/v1/models"),
            ("GET", "/health"),
            ("GET", "/metrics"),
            ("GET", "/nothing"),
            ("OPTIONS", "/v1/models"),
        ):
            answer = await bench.call(method, path, headers={"host": host})
            assert (answer.status, answer.error["code"]) == (403, "host_not_allowed")


async def test_names_of_this_machine_and_listed_ones_are_accepted(start: Start) -> None:
    bench = await start(allowed_hosts=("box.internal",))
    for host in ("localhost", "LOCALHOST:1234", "127.0.0.1:99", "[::1]:8000", "box.internal:8000"):
        assert (await bench.get("/health", headers={"host": host})).status == 200


async def test_pages_of_this_machine_may_call_a_loopback_server_others_may_not(start: Start) -> None:
    bench = await start(allowed_origins=("https://app.example",))
    for origin, allowed in (
        ("http://localhost:3000", True),
        ("https://app.example", True),
        ("https://evil.example", False),
        ("http://localhost.evil.example", False),
        ("null", False),
    ):
        answer = await bench.post("/v1/completions", {"prompt": "a"}, headers={"origin": origin})
        assert answer.headers.get("access-control-allow-origin") == (origin if allowed else None)
        preflight = await bench.call(
            "OPTIONS",
            "/v1/completions",
            headers={
                "origin": origin,
                "access-control-request-method": "POST",
                "access-control-request-headers": "authorization,content-type",
            },
        )
        assert preflight.status == (204 if allowed else 403)
        if allowed:
            assert preflight.headers["vary"] == "Origin"
            assert preflight.headers["access-control-allow-headers"] == "authorization,content-type"
            assert "x-request-id" in answer.headers["access-control-expose-headers"]


async def test_options_need_no_key(start: Start) -> None:
    bench = await start(**KEYS)
    assert (await bench.call("OPTIONS", "/v1/models")).status == 204


async def test_a_request_id_is_echoed_if_it_is_harmless_else_made(start: Start) -> None:
    bench = await start()
    assert (await bench.get("/health", headers={"x-request-id": "abc-123_X.y:z"})).headers["x-request-id"] == "abc-123_X.y:z"
    for bad in ("a b", "x" * 129, 'a"b', "é"):
        made = (await bench.get("/health", headers={"x-request-id": bad})).headers["x-request-id"]
        assert made.startswith("req-")
    assert (await bench.get("/nothing")).headers["x-request-id"].startswith("req-")


def test_keys_are_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("# ours\nanna: s3:cret \n\nben:x\n")
    assert read_keys(path) == [("anna", "s3:cret"), ("ben", "x")]
    ring = keys_from_environment({"HYBRID_API_KEYS_FILE": str(path), "HYBRID_ADMIN_KEY": "root"})
    assert ring.caller("s3:cret") is not None
    assert ring.caller("x").key_id == "ben"  # type: ignore[union-attr]
    assert ring.caller("root").admin  # type: ignore[union-attr]
    assert ring.caller(None) is None


def test_a_keys_file_may_come_from_any_editor(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(b"\xef\xbb\xbfanna:s3cret\r\n\r\nben:x")
    assert read_keys(path) == [("anna", "s3cret"), ("ben", "x")]


WRONG = ["", "# none\n", "anna\n", "anna:\n", ":x\n", "a b:x\n", "anna:x\nanna:y\n", "local:x\n", "admin:x\n"]
WRONG += ["anna:pass\u00e9\n", "anna:x\x00y\n"]  # no client could send them
WRONG += ["anna:same\nben:same\n"]  # whose prompts would they be?


@pytest.mark.parametrize("text", WRONG)
def test_a_keys_file_that_is_wrong_never_opens_the_server(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigError):
        read_keys(path)
    with pytest.raises(ConfigError):
        read_keys(tmp_path / "missing")


def test_an_admin_key_is_one_that_can_be_sent_and_is_nobody_elses(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("anna:s3cret\n")
    assert keys_from_environment({"HYBRID_ADMIN_KEY": "root\n"}).caller("root").admin  # type: ignore[union-attr]
    assert not keys_from_environment({"HYBRID_ADMIN_KEY": ""}).has_admin
    for wrong in (" ", "s\u00e9same", "s3cret"):
        with pytest.raises(ConfigError) as refused:
            keys_from_environment({"HYBRID_API_KEYS_FILE": str(path), "HYBRID_ADMIN_KEY": wrong})
        assert "s3cret" not in str(refused.value)
