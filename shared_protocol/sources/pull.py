"""Bringing a model into the store, from any source that `source_plan` knows.

A pull that breaks off leaves what came in ROOT/partial, and the next one goes on there; the model appears in the store by one rename,
when it is whole, has the SHA-256 that is known of it, and can be loaded.
"""

from __future__ import annotations

import re
import shutil
import time
from contextlib import suppress
from pathlib import Path

from ..architecture.hf_folder import read_folder
from ..errors import ChecksumMismatch, Conflict, ModelNotFound
from ..gguf import read_gguf
from ..model import folder_model_of, model_of
from ..model_card import ModelCard
from ..store import Store, check_name
from .catalogue import Catalogue, load_catalogue
from .disk import full_disk
from .download import Patience, Progress
from .partial import remove_stale, unfinished
from .source_plan import Fetched, Plan, holds_data, plan_of


def pull(
    source: str,
    store: Store,
    catalogue: Catalogue | None = None,
    progress: Progress | None = None,
    name: str | None = None,
    patience: Patience | None = None,
) -> ModelCard:
    """Bring a model into `store` under `name` (default: the catalogue's, or the file's) and return its card.

    One that is there already is returned as it is. Raises ModelNotFound, ChecksumMismatch, ModelFileError, NotEnoughSpace,
    CloudUnreachable, AuthenticationError, PermissionDenied, Conflict when another model has the name, InvalidRequest for a source that
    nobody knows. After CloudUnreachable, AuthenticationError, NotEnoughSpace or an interrupt the next pull goes on where this one stopped.
    """
    plan = plan_of(source, load_catalogue() if catalogue is None else catalogue)
    name = check_name(name or plan.name)
    report = progress or (lambda what, done, total: None)
    if store.has(name):  # what is there is whole: this needs no lock, nor a store that can be written
        with suppress(ModelNotFound):  # removed meanwhile
            return _there_already(store, name, plan)
    remove_stale(store.root, store.lock_at_once, time.time())
    with store.lock(name, on_wait=lambda: report(f"waiting for another process that works on {name}", 0, None)):
        if store.has(name):
            return _there_already(store, name, plan)
        with unfinished(store.root, name, f"{plan.source} {plan.sha256}") as folder:
            try:
                return _take(store, name, plan, folder, report, patience or Patience())
            except OSError as error:
                raise full_disk(error, folder) from None


def _take(store: Store, name: str, plan: Plan, folder: Path, report: Progress, patience: Patience) -> ModelCard:
    fetched = plan.fetch(folder, report, patience)
    if plan.sha256 not in (None, fetched.sha256):
        shutil.rmtree(folder)  # nobody knows which part is wrong
        problem = f"{plan.source}: the SHA-256 is {fetched.sha256}, expected {plan.sha256}"
        raise ChecksumMismatch(problem, hint="pull it again; nothing was kept")
    report("checking", 0, None)
    card = _card_of(fetched, name, plan.licence)
    target = folder / "new" / re.sub(r"[^A-Za-z0-9._+ -]|^[.]", "_", fetched.file)
    fetched.path.replace(target)  # only now: a pull that is interrupted before goes on with what it has
    return store.add(name, target, card, plan.source).card


def _card_of(fetched: Fetched, name: str, licence: str | None) -> ModelCard:
    """Check that the model can be loaded. Raises ModelFileError."""
    path, licence = fetched.path, licence or fetched.licence
    if path.is_dir():
        return folder_model_of(read_folder(path), name=name, file_hash=fetched.sha256, licence=licence).card
    return model_of(read_gguf(path), name=name, file_hash=fetched.sha256, licence=licence).card


def _there_already(store: Store, name: str, plan: Plan) -> ModelCard:
    model = store.checked(name)
    expected = plan.sha256 or (store.hash_of(plan.path) if plan.path and holds_data(plan.path) else None)
    if expected != model.card.file_hash if expected else plan.source != model.source:
        raise Conflict(
            f"the store has another model under the name {name!r}, from {model.source}", hint=f"hybrid rm {name}, or pull --name OTHER"
        )
    return model.card
