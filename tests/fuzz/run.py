"""Look for inputs that break a reader, guided by the code that they reach. Needs `atheris` (not a dependency) beside Hybrid.

    python tests/fuzz/run.py gguf --minutes 10            inputs that reach new code gather in build/fuzz/gguf/corpus
    python tests/fuzz/run.py gguf --keep                  a few of them that reach as much replace tests/fuzz/corpus/gguf

A finding is an exception that is no typed error, memory without a bound, or 30 s without an end. One of each kind is kept in
build/fuzz/gguf/findings, and the search goes on; the exit code is 1 when there are any.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import shutil
import sys
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import FrameType

from hybrid.tests.fuzz.json_edits import HEADS, edited

HERE = Path(__file__).parent
BUILD = HERE.parent.parent / "build" / "fuzz"
MAX_INPUT = {
    "gguf": 16_384,
    "metadata": 256,
    "template": 1024,
    "safetensors": 4096,
    "folder": 4096,
    "tokenizer_json": 8192,
    "listings": 4096,
}  # bytes
MAX_KEPT = 150_000  # bytes of one target's corpus
Step = tuple[str, int, int]  # file, line, next line
_GROWTH = 96 << 20  # bytes by which one input may raise the peak of memory
_WARM = 50  # runs, after which all that is loaded lazily is there
_ADDRESSES = 4 << 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=list(MAX_INPUT))
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    if arguments.keep:
        keep(arguments.target)
    else:
        search(arguments.target, arguments.minutes)


def search(target: str, minutes: float) -> None:
    import atheris

    with atheris.instrument_imports(include=["hybrid.shared_protocol", "jinja2"], enable_loader_override=False):
        module = import_module(f"hybrid.tests.fuzz.{target}")
    work = BUILD / target
    for name in ("corpus", "findings", "seeds"):
        (work / name).mkdir(parents=True, exist_ok=True)
    for seed in module.seeds():
        (work / "seeds" / hashlib.sha1(seed).hexdigest()).write_bytes(seed)
    dictionary = (HERE / "dictionaries" / f"{target}.txt").read_text("utf-8").split()
    words = ["".join(f"\\x{byte:02x}" for byte in word.encode()) for word in dictionary]
    (work / "dictionary").write_text("".join(f'"{word}"\n' for word in words))
    kept = HERE / "corpus" / target
    folders = [work / "corpus", work / "seeds", *([kept] if kept.is_dir() else [])]
    options = [
        f"-max_total_time={int(minutes * 60)}",
        f"-max_len={MAX_INPUT[target]}",
        f"-dict={work / 'dictionary'}",
        f"-artifact_prefix={work / 'findings'}/",
        "-timeout=30",
        "-rss_limit_mb=4096",
        "-print_final_stats=1",
    ]
    mutators = {}
    if target in HEADS:

        def mutate(data: bytes, max_size: int, seed: int) -> bytes:
            changed = edited(target, data, dictionary, seed) if seed % 8 else None
            return changed[:max_size] if changed else bytes(atheris.Mutate(data, max_size))

        mutators["custom_mutator"] = mutate
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    atheris.Setup([sys.argv[0], *options, *map(str, folders)], watched(module.run, work / "findings"), **mutators)
    atheris.Fuzz()


def watched(run: Callable[[bytes], None], findings: Path) -> Callable[[bytes], None]:
    """`run`, with each new kind of failure noted beside the input that shows it."""
    seen: set[str] = set()
    runs = 0

    def note(kind: str, data: bytes, told: str) -> None:
        if kind not in seen:
            seen.add(kind)
            name = hashlib.sha1(kind.encode()).hexdigest()[:12]
            (findings / name).write_bytes(data)
            (findings / f"{name}.txt").write_text(told)
            print(f"FINDING {name}: {kind}", file=sys.stderr, flush=True)

    def one(data: bytes) -> None:
        nonlocal runs
        runs += 1
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.process_time()
        try:
            run(data)
        except BaseException as error:  # a panic of a library in Rust is no Exception
            where = next((frame for frame in reversed(traceback.extract_tb(error.__traceback__)) if "fuzz" not in frame.filename), None)
            kind = f"{type(error).__name__} at {where.filename if where else '?'}:{where.lineno if where else 0}"
            note(kind, data, traceback.format_exc())
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        if grown > _GROWTH and runs > _WARM:
            note(f"memory {grown >> 26}", data, f"the peak of memory rose by {grown} bytes")
        if (spent := time.process_time() - started) > 5:
            note(f"time {int(spent).bit_length()}", data, f"{spent:.1f} s of CPU time")

    return one


def keep(target: str) -> None:
    """Choose inputs of which each goes from a line to another as none before it does: seeds, then the smallest, up to a bound in bytes."""
    module = import_module(f"hybrid.tests.fuzz.{target}")
    kept = HERE / "corpus" / target
    seeds = set(module.seeds())
    found = seeds | {path.read_bytes() for folder in (BUILD / target / "corpus", kept) if folder.is_dir() for path in folder.iterdir()}
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    reached: set[Step] = set()
    room = MAX_KEPT
    for data in sorted(found, key=lambda data: (data not in seeds, len(data), data)):
        new = steps_of(module.run, data) - reached
        if new and len(data) <= room:
            reached |= new
            room -= len(data)
            (kept / hashlib.sha1(data).hexdigest()).write_bytes(data)
    print(f"{len(list(kept.iterdir()))} of {len(found)} inputs, {MAX_KEPT - room} bytes, {len(reached)} steps from line to line")


def steps_of(run: Callable[[bytes], None], data: bytes) -> set[Step]:
    """The steps from line to line that `run` takes in the code under test."""
    steps: set[Step] = set()

    def trace(frame: FrameType, event: str, argument: object) -> Callable[..., object] | None:
        file, last = frame.f_code.co_filename, frame.f_lineno
        if "shared_protocol" not in file and "jinja2" not in file:
            return None

        def local(frame: FrameType, event: str, argument: object) -> Callable[..., object]:
            nonlocal last
            steps.add((file, last, frame.f_lineno))
            last = frame.f_lineno
            return local

        return local

    sys.settrace(trace)
    try:
        run(data)
    finally:
        sys.settrace(None)
    return steps


if __name__ == "__main__":
    main()
