"""`hybrid doctor`: what works on this machine, what does not, and what to do."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from dataclasses import asdict, dataclass
from typing import Literal

import click

from ... import __version__
from ...shared_protocol.errors import HybridError
from ...shared_protocol.sources.pip_settings import names_of, pip_settings
from ...shared_protocol.store import Store
from .output import json_option, megabytes, print_json

State = Literal["ok", "note", "failed"]  # a note: it works, but slower or with less


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    state: State
    found: str


@click.command()
@click.option("--verify", is_flag=True, help="Hash every model file again.")
@json_option
def doctor(verify: bool, as_json: bool) -> None:
    """Check this machine: kernels, store, models. Exits 1 when something failed."""
    store = Store()
    findings = [_python(), _kernels(), _llama_cpp(), _pip(), _store(store), *_models(store, verify)]
    failed = any(finding.state == "failed" for finding in findings)
    if as_json:
        print_json({"version": __version__, "ok": not failed, "kernels": _native(), "findings": [asdict(finding) for finding in findings]})
    else:
        width = max(len(finding.check) for finding in findings)
        for finding in findings:
            click.echo(f"{finding.state:6}  {finding.check.ljust(width)}  {finding.found}")
    if failed:
        raise click.exceptions.Exit(1)


def _native() -> dict[str, object]:
    from ...npu_backends.cpu.library import describe  # loads NumPy, which --help does without

    native = describe()
    return {"found": native.found, "path": native.path, "isa": native.isa, "kernel_id": native.kernel_id, "reason": native.reason}


def _python() -> Finding:
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return Finding("python", "ok", f"{platform.python_version()} on {platform.machine()}, {cpus} CPUs")


def _kernels() -> Finding:
    from ...npu_backends.cpu.select import chosen_backend

    native = _native()
    try:
        chosen = chosen_backend()
    except HybridError as error:
        return Finding("kernels", "failed", f"HYBRID_BACKEND: {error}")
    if chosen == "reference":
        return Finding("kernels", "note", "the NumPy reference serves, slower: HYBRID_BACKEND=reference says so")
    if native["found"]:
        return Finding("kernels", "ok", f"{native['kernel_id']} from {native['path']}")
    if chosen == "native":
        return Finding("kernels", "failed", f"HYBRID_BACKEND=native, but {native['reason']}")
    return Finding("kernels", "note", f"the NumPy reference serves, slower: {native['reason']}")


def _llama_cpp() -> Finding:
    from ...edge.llama_cpp.library import LlamaCppUnavailable, load_library

    try:
        found = load_library().found
    except LlamaCppUnavailable as error:
        return Finding("llama.cpp", "note", f"not for --runtime llama_cpp: {error}")
    return Finding("llama.cpp", "ok", f"{found.origin} {found.version}, for --runtime llama_cpp")


def _pip() -> Finding:
    try:
        return Finding("pip", "ok", f"its settings name {names_of(pip_settings())} for models in wheels")
    except HybridError as error:
        return Finding("pip", "failed", str(error))


def _store(store: Store) -> Finding:
    existing = next(folder for folder in (store.root, *store.root.parents) if folder.exists())
    free = megabytes(shutil.disk_usage(existing).free)
    try:
        tempfile.TemporaryFile(dir=existing).close()
    except OSError as error:
        return Finding("store", "failed", f"{store.root} cannot be written: {error.strerror} (set HYBRID_HOME to a folder that can)")
    return Finding("store", "ok", f"{store.root}, {free} free")


def _models(store: Store, verify: bool) -> list[Finding]:
    findings = [Finding(f"model {name}", "failed", f"{problem} (hybrid rm {name})") for name, problem in store.broken().items()]
    for model in store.list():
        name = model.card.name
        try:
            (store.verify if verify else store.checked)(name)
        except HybridError as error:
            findings.append(Finding(f"model {name}", "failed", str(error)))
        else:
            how = "SHA-256 as pulled" if verify else "unchanged since its pull"
            findings.append(Finding(f"model {name}", "ok", f"{model.card.quantisation}, {megabytes(model.card.file_bytes)}, {how}"))
    if not findings:
        findings.append(Finding("models", "note", "none yet (hybrid pull smollm2-135m)"))
    return findings
