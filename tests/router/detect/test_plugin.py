"""Detectors of other packages: found by name, kept to a deadline, and whatever goes wrong makes the text private."""

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from hybrid.router.decide import decide
from hybrid.router.detect import plugin
from hybrid.router.detect import search as search_module
from hybrid.router.detect.plugin import THREADS, Plugin
from hybrid.router.detect.search import search
from hybrid.router.policy.policy import Policy
from hybrid.router.privacy import assess, classify
from hybrid.router.request import RouteContext, RouteRequest

MODULE = """
import threading
from hybrid.router.detect.finding import Finding

go_on = threading.Event()

class Dragons:
    name = "dragons"
    kinds = ("dragon",)
    max_characters = 1000

    def find(self, scan):
        at = scan.text.find("dragon")
        return [scan.finding("dragon", at, at + 6)] if at >= 0 else []

class Slow(Dragons):
    def find(self, scan):
        go_on.wait()
        return super().find(scan)

class Crash(Dragons):
    def find(self, scan):
        raise SystemExit(scan.text)

class Beyond(Dragons):
    def find(self, scan):
        return [Finding("dragon", 0, len(scan.written) + 1)]

class Undeclared(Dragons):
    def find(self, scan):
        return [Finding("wyvern", 0, 1)]

class Backwards(Dragons):
    def find(self, scan):
        return [Finding("dragon", 3, 3)]

class Endless(Dragons):
    def find(self, scan):
        return [Finding("dragon", 0, 1)] * 10_001

class NoKinds:
    kinds = "dragon"
    def find(self, scan):
        return []

def broken():
    raise ValueError

ready = Dragons()
"""
NAMES = ("Dragons", "Slow", "Crash", "Beyond", "Undeclared", "Backwards", "Endless", "NoKinds", "broken", "ready", "absent")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that offers detectors, as an installer leaves it on disk."""
    (tmp_path / "bestiary_of_tests.py").write_text(MODULE)
    info = tmp_path / "bestiary_of_tests-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bestiary-of-tests\nVersion: 1.0\n")
    points = [f"{name.lower()} = bestiary_of_tests:{name}" for name in NAMES]
    points.append("unimportable = no_such_module_anywhere:x")
    (info / "entry_points.txt").write_text("[hybrid.detectors]\n" + "\n".join(points) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    plugin.plugin.cache_clear()
    assert len(entry_points(group=plugin.GROUP, name="dragons")) == 1
    yield
    if "bestiary_of_tests" in sys.modules:
        sys.modules.pop("bestiary_of_tests").go_on.set()
    plugin.plugin.cache_clear()


def policy(*names: str, more: str = "") -> Policy:
    return Policy.parse(f"[privacy]\ndetectors = {list(names)}\n{more}")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["dragons", "ready"])
def test_a_plug_in_that_a_policy_names_searches_too(name: str) -> None:
    found = classify("here be dragons", policy(name))
    assert (found.verdict, dict(found.findings), found.failed) == ("local_only", {"dragon": 1}, ())
    assert classify("here be lions", policy(name)).verdict == "public"
    assert classify("here be dragons", policy(name, more='other = "block"')).verdict == "block"
    assert classify("here be dragons", Policy.default()).verdict == "public"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nobody-offers-this", "nobody-offers-this is missing"),
        ("unimportable", "unimportable is missing"),
        ("absent", "absent crashed"),
        ("broken", "broken crashed"),
        ("crash", "crash crashed"),
        ("beyond", "beyond is invalid"),
        ("undeclared", "undeclared is invalid"),
        ("backwards", "backwards is invalid"),
        ("endless", "endless is invalid"),
        ("nokinds", "nokinds is invalid"),
    ],
)
def test_a_plug_in_that_fails_makes_every_text_private_and_says_why(name: str, why: str) -> None:
    for _ in range(2):
        found = classify("here be lions", policy(name))
        assert (found.verdict, dict(found.findings), found.failed) == ("local_only", {"unreadable": 1}, (why,))
    decision = decide(RouteRequest.of("here be lions"), RouteContext(policy=policy(name)))
    assert why in decision.why and "lions" not in decision.why and decision.shareable is None


@pytest.mark.usefixtures("installed")
def test_a_text_beyond_the_length_of_a_plug_in_is_private() -> None:
    assert classify("x" * 1000, policy("dragons")).verdict == "public"
    assert classify("x" * 1001, policy("dragons")).failed == ("dragons is too long",)


@pytest.mark.usefixtures("installed")
def test_a_late_plug_in_is_left_alone_and_its_threads_never_pile_up() -> None:
    impatient = policy("slow", "dragons", more="detector_deadline_ms = 1")
    plugin.plugin("slow").patience_s(0)  # it has been loaded before
    plugin.plugin("dragons").patience_s(0)
    for _ in range(3 * THREADS):
        found = classify("here be dragons", impatient)
        assert found.verdict == "local_only" and "slow is late" in found.failed
    assert len(threads_of("slow")) == THREADS
    sys.modules["bestiary_of_tests"].go_on.set()
    for thread in threads_of("slow"):
        thread.join()
    for thread in threads_of("dragons"):
        thread.join()
    found = classify("here be dragons", policy("slow", more="detector_deadline_ms = 60000"))
    assert (dict(found.findings), found.failed) == ({"dragon": 1}, ())  # it is asked again once it has ended


def threads_of(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == f"detector {name}"]


@pytest.mark.usefixtures("installed")
def test_all_plug_ins_share_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    privacy = policy("slow", "dragons", "missing", more="detector_deadline_ms = 10").privacy
    waits: list[float | None] = []
    monkeypatch.setattr(search_module, "wait", lambda begun, seconds: (waits.append(seconds), wait(begun, min(seconds, 0.05))))
    for _ in range(2):
        assert "slow is late" in search(["x"], privacy).failed
    assert waits == [plugin.LOAD_S, 0.01]


@pytest.mark.usefixtures("installed")
def test_every_text_of_a_conversation_gets_its_own_findings() -> None:
    texts = ["lions", "a dragon", "a d\u200bragon, a@b.example"]
    found = search(texts, policy("dragons").privacy)
    assert [[(one.kind, text[one.start : one.end]) for one in here] for text, here in zip(texts, found.findings, strict=True)] == [
        [],
        [("dragon", "dragon")],
        [("email", "a@b.example"), ("dragon", "d\u200bragon")],
    ]
    request = RouteRequest.of([{"role": "user", "content": text} for text in texts])
    assert dict(assess(request, policy("dragons")).findings) == {"dragon": 2, "email": 1}


def test_a_name_of_ours_cannot_be_taken_by_a_plug_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plug-in named "email" searches beside ours, not instead of it."""
    silent: Future[plugin.Answer] = Future()
    silent.set_result([[]])
    monkeypatch.setattr(Plugin, "start", lambda self, scans: silent)
    assert classify("a@b.example", policy("email")).findings["email"] == 1
