"""Runs a program that a model wrote in a process of its own: no network, few resources, a clock.

Linux as root: a network namespace without any interface (`unshare -n`), then the user `nobody`. Otherwise: an audit hook that refuses
sockets, and the same limits. Either way: CPU seconds, address space, no new files beyond 64 kB, 16 descriptors, no further processes,
an empty environment, an empty directory. It can read what its user can read: keep nothing secret where `nobody` may look.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from functools import cache
from typing import Any, Literal

Isolation = Literal["network namespace and user nobody", "socket-refusing audit hook"]

# The program proves that its checks ran to the end by a token that it only gets afterwards: leaving early is not passing.
RUNNER = r"""
import json, os, resource, sys
job = json.load(sys.stdin)
sys.stdin.close()
for what, most in job["limits"].items():
    resource.setrlimit(getattr(resource, what), (most, most))
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
def refuse(event, args):
    if event.startswith("socket.") or event in ("os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "subprocess.Popen", "os.system"):
        raise PermissionError(event)
sys.addaudithook(refuse)
import builtins, io
proof, out = job["proof"], os.dup(1)
sys.stdout = sys.stderr = io.StringIO()
exec(compile(job.pop("program"), "<answer>", "exec"), {"__name__": "answer"})
os.write(out, proof.encode())
"""
LIMITS = {"RLIMIT_CPU": 8, "RLIMIT_AS": 1 << 30, "RLIMIT_FSIZE": 1 << 16, "RLIMIT_NOFILE": 16, "RLIMIT_CORE": 0}


@cache
def interpreter() -> str | None:
    """A Python that the program's user can start and import from: one in a folder of root's own is none for `nobody`."""
    as_user: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    for python in (sys.executable, "/usr/bin/python3"):
        command = [python, "-I", "-S", "-B", "-c", "import math, json, re, collections, socket, subprocess"]
        if os.path.exists(python):
            try:
                if subprocess.run(command, cwd="/", env={}, capture_output=True, check=False, timeout=30, **as_user).returncode == 0:
                    return python
            except OSError:
                continue
    return None


def isolation() -> Isolation:
    """What keeps a program from the network on this machine."""
    if os.geteuid() == 0 and shutil.which("unshare"):
        tried = subprocess.run(["unshare", "-n", "true"], check=False, capture_output=True, timeout=10)
        if tried.returncode == 0:
            return "network namespace and user nobody"
    return "socket-refusing audit hook"


def passes(program: str, how: Isolation, seconds: float = 20.0) -> bool:
    """Whether `program` runs to its end without an exception, within its limits and `seconds` of wall time. Raises RuntimeError where no
    Python can be read by its user."""
    python = interpreter()
    if python is None:
        raise RuntimeError("no Python here can be read by the user nobody; install one in /usr, or run as another user than root")
    proof = secrets.token_hex(16)
    command = [python, "-I", "-S", "-B", "-c", RUNNER]
    if how == "network namespace and user nobody":
        command = ["unshare", "-n", "--", *command]
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={"PATH": "/usr/bin:/bin"},
            start_new_session=True,
        )
        try:
            told = json.dumps({"program": program, "proof": proof, "limits": LIMITS}).encode()
            output, _ = process.communicate(told, timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return False
    return process.returncode == 0 and output == proof.encode()
