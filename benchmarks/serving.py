"""`hybrid serve` against llama.cpp's own server: clients that ask at the same moment and read streamed answers, over real sockets.

    python benchmarks/serving.py --json [--clients 1 8 32] [--tokens 64] [--requantise]      Linux only
    {"results": [{"clients", "wall_ratio", "cpu_ratio", "ours": {"tokens_per_s", "first_ms", "gap_ms", ...}, "theirs": {..}}, ...], ...}

Both serve the same file, or with --requantise llama.cpp its own Q4_0 of it, with as many threads for the model, to the same chat
requests, in turn inside every round; no two requests begin alike, so that no cache of prefixes helps. Ratios are theirs / ours, medians
over the rounds, above 1 we are faster: `wall_ratio` of the time until the last answer is whole, `cpu_ratio` of the CPU time of the
server's process. `first_ms` is the time to the first token, `gap_ms` the time between two tokens of an answer, each as
[median, 99th percentile] over all clients and rounds. The clients are one further process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from requantise import requantise
from timing import machine, open_model

CONTEXT = 512  # tokens of one request, at most
KV_MIB = 512  # of ours: room for every client at once, as each of llama.cpp's slots has its own
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    pid: int
    model: str  # as clients name it

    def cpu(self) -> float:
        """CPU seconds so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


@dataclass(frozen=True, slots=True)
class Answer:
    """When it was asked and when each of its pieces came, seconds; `tokens` by the server's own count."""

    asked: float
    pieces: tuple[float, ...]
    tokens: int

    def gaps(self) -> list[float]:
        return [later - earlier for earlier, later in zip(self.pieces, self.pieces[1:], strict=False)]


@dataclass(frozen=True, slots=True)
class Round:
    wall: float
    cpu: float
    answers: tuple[Answer, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    parser.add_argument("--model", default=os.environ.get("HYBRID_TEST_MODEL", "smollm2-135m"), help="a model of the store, or a GGUF file")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32], help="that ask at once")
    parser.add_argument("--tokens", type=int, default=64, help="of each answer")
    parser.add_argument("--threads", type=int, default=1, help="for the model, of either server")
    parser.add_argument("--requantise", action="store_true", help="llama.cpp serves its fastest type, which costs it accuracy")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    model = open_model(options.model)
    slots = max(options.clients)
    with tempfile.TemporaryDirectory() as scratch:
        file = requantise(model.path, Path(scratch) / "q4_0.gguf") if options.requantise else model.path
        with ours(model.path, options.threads, slots) as mine, theirs(file, options.threads, slots) as peer:
            results = [asyncio.run(compare(mine, peer, clients, options.tokens, options.rounds)) for clients in options.clients]
    record = {
        "results": results,
        **machine(options.threads, load_before),
        "tokens": options.tokens,
        "requantised": options.requantise,
        "rounds": options.rounds,
    }
    print(json.dumps(record) if options.json else "\n".join(map(str, results)))


@contextmanager
def ours(file: Path, threads: int, slots: int) -> Iterator[Server]:
    command = [sys.executable, "-m", "hybrid.apps.cli.main", "serve", str(file), "--port", "0", "--json", "--threads", str(threads)]
    command += ["--max-num-seqs", str(slots), "--max-model-len", str(CONTEXT), "--kv-mib", str(KV_MIB)]
    with running(command) as (process, told):
        yield Server(told["url"], process.pid, told["model"])


@contextmanager
def theirs(file: Path, threads: int, slots: int) -> Iterator[Server]:
    script = Path(__file__).with_name("serving_peer.py")
    command = [sys.executable, str(script), str(file), "--threads", str(threads), "--slots", str(slots), "--context", str(CONTEXT)]
    with running(command) as (process, told):
        yield Server(told["url"], process.pid, "any")


@contextmanager
def running(command: list[str]) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """A server and the line of JSON that it prints once it answers."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"it ended with {process.wait()} before it served: {' '.join(command)}")
        yield process, json.loads(line)
    finally:
        process.terminate()
        process.communicate()


async def compare(mine: Server, peer: Server, clients: int, tokens: int, rounds: int) -> dict[str, object]:
    """Let both answer the same requests in turn; the first round is dropped."""
    done: dict[str, list[Round]] = {"ours": [], "theirs": []}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout()) as session:
        for number in range(rounds + 1):
            prompts = [prompt(clients, number, client) for client in range(clients)]
            for name, server in (("ours", mine), ("theirs", peer)):
                done[name].append(await ask_all(session, server, prompts, tokens))
    kept = {name: each[1:] for name, each in done.items()}
    pairs = list(zip(kept["theirs"], kept["ours"], strict=True))
    return {
        "clients": clients,
        "wall_ratio": round(statistics.median(peer.wall / own.wall for peer, own in pairs), 3),
        "cpu_ratio": round(statistics.median(peer.cpu / own.cpu for peer, own in pairs), 3),
        **{name: summary(each) for name, each in kept.items()},
    }


def prompt(clients: int, number: int, client: int) -> str:
    return (
        f"{clients}-{number}-{client}: " + f"tell of river number {client}, of its springs, bridges, boats and people, and of the sea. " * 3
    )


async def ask_all(session: aiohttp.ClientSession, server: Server, prompts: list[str], tokens: int) -> Round:
    wall, cpu = time.perf_counter(), server.cpu()
    answers = await asyncio.gather(*(ask(session, server, text, tokens) for text in prompts))
    return Round(time.perf_counter() - wall, server.cpu() - cpu, tuple(answers))


async def ask(session: aiohttp.ClientSession, server: Server, text: str, tokens: int) -> Answer:
    body = {
        "model": server.model,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    asked, pieces, written = time.perf_counter(), [], 0
    async with session.post(f"{server.url}/v1/chat/completions", json=body) as response:
        if response.status != 200:
            raise SystemExit(f"{server.url} answered {response.status}: {await response.text()}")
        async for line in response.content:
            if not line.startswith(b"data: {"):
                continue
            data = json.loads(line[6:])
            if any(choice["delta"].get("content") for choice in data.get("choices", ())):
                pieces.append(time.perf_counter())
            written = (data.get("usage") or {}).get("completion_tokens", written)
    if written != tokens or not pieces:
        raise SystemExit(f"{server.url} wrote {written} tokens, asked for {tokens}")
    return Answer(asked, tuple(pieces), written)


def summary(rounds: list[Round]) -> dict[str, object]:
    answers = [answer for each in rounds for answer in each.answers]
    rate = statistics.median(sum(answer.tokens for answer in each.answers) / each.wall for each in rounds)
    return {
        "tokens_per_s": round(rate, 1),
        "cpu_s": round(statistics.median(each.cpu for each in rounds), 2),
        "first_ms": percentiles([answer.pieces[0] - answer.asked for answer in answers]),
        "gap_ms": percentiles([gap for answer in answers for gap in answer.gaps()]),
    }


def percentiles(seconds: list[float]) -> list[float]:
    """[median, 99th percentile] in milliseconds."""
    ordered = sorted(seconds)
    return [round(1e3 * ordered[min(len(ordered) - 1, int(len(ordered) * share))], 1) for share in (0.5, 0.99)]


if __name__ == "__main__":
    main()
