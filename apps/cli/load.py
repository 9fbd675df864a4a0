"""A model by name, brought in first when the catalogue has it and the store does not."""

from __future__ import annotations

from ...shared_protocol.model import Model, load_model
from ...shared_protocol.sources.catalogue import load_catalogue
from ...shared_protocol.sources.pull import pull
from ...shared_protocol.store import Store
from .output import Progress


def load_or_pull(name: str) -> Model:
    if name in load_catalogue() and not Store().has(name):
        progress = Progress()
        try:
            pull(name, Store(), progress=progress)
        finally:
            progress.close()
    return load_model(name)
