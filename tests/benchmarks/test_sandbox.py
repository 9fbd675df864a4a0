"""Programs that a model wrote are run without network, without other processes, with little memory and little time."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from sandbox import Isolation, interpreter, isolation, passes

pytestmark = pytest.mark.skipif(interpreter() is None, reason="no Python here can be read by the user nobody")

WAYS: list[Isolation] = sorted({isolation(), "socket-refusing audit hook"})

CAUGHT = "try:\n    {}\nexcept (OSError, MemoryError):\n    pass\nelse:\n    raise SystemExit('it was let through')"


@pytest.mark.parametrize("how", WAYS)
def test_a_program_passes_when_it_runs_to_its_end(how: Isolation) -> None:
    assert passes("import math, re, collections\nassert math.gcd(6, 4) == 2", how)
    assert not passes("assert 1 == 2", how)


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("early", ["import sys; sys.exit(0)", "import os; os._exit(0)", "print('passed')\nraise SystemExit"])
def test_leaving_early_is_not_passing(how: Isolation, early: str) -> None:
    assert not passes(early, how)


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize(
    "deed",
    [
        "import socket; socket.create_connection(('127.0.0.1', 9), 1)",
        "import socket; socket.getaddrinfo('localhost', 80)",
        "import os; os.fork()",
        "import subprocess; subprocess.run(['true'])",
        "bytearray(2 << 30)",
        "[open('/dev/null') for _ in range(64)]",
    ],
)
def test_what_an_answer_has_no_need_for_is_refused(how: Isolation, deed: str) -> None:
    assert passes(CAUGHT.format(deed), how)


@pytest.mark.parametrize("how", WAYS)
def test_a_program_that_does_not_end_is_ended(how: Isolation) -> None:
    assert not passes("while True: pass", how, seconds=1.5)


def test_it_gets_no_environment_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_PARENT", "x")
    assert passes("import os\nassert 'SECRET_OF_THE_PARENT' not in os.environ", isolation())
