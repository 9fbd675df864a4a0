"""The `hybrid` command: its subcommands load when they are called, so that `--help` is quick."""

from __future__ import annotations

import os
import sys
import traceback

import click

from ... import __version__
from ...shared_protocol.errors import HybridError
from .lazy_group import Lazy, LazyGroup
from .output import discard_stdout

COMMANDS = {
    "demo": Lazy("demo", "demo", "Show the whole system on this machine, with a real small model."),
    "serve": Lazy("serve", "serve", "Serve a model behind an OpenAI-compatible endpoint."),
    "chat": Lazy("chat", "chat", "Talk with a model, on the device, in the cloud, or on both."),
    "run": Lazy("run", "run", "Answer one prompt on this machine."),
    "pull": Lazy("models", "pull", "Bring a model into the local store."),
    "list": Lazy("models", "list_models", "List the models in the local store."),
    "show": Lazy("models", "show", "Show what is known about a model."),
    "rm": Lazy("models", "rm", "Remove a model from the local store."),
    "route": Lazy("route", "route", "Explain where a prompt would be answered, and test policies."),
    "plan": Lazy("plan", "plan", "Say whether drafting on the device pays."),
    "compile": Lazy("compile", "compile_command", "Compile a model for a chip, and say what it would cost there."),
    "doctor": Lazy("doctor", "doctor", "Check this machine: kernels, store, models."),
    "version": Lazy("version", "version", "Print version and kernel id."),
}


@click.command(cls=LazyGroup, package=__package__, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="hybrid")
def cli() -> None:
    """Run language models across a device and a cloud."""


def main() -> None:
    """Entry point: errors are one line and a hint, with the exit code of their class."""
    _open_closed_streams()
    try:
        sys.exit(cli.main(standalone_mode=False) or 0)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except Exception as error:
        if "--debug" in sys.argv:
            traceback.print_exc()
        else:
            click.echo(f"hybrid: {_sentence(error)}", err=True)
        if isinstance(error, OSError):  # perhaps of stdout, which still holds what it could not write
            _flush_or_discard()
        sys.exit(error.exit_code if isinstance(error, HybridError) else 1)


def _open_closed_streams() -> None:
    """Streams that the caller has closed are empty ones, and no file that is opened later gets their number."""
    for name in ("stdin", "stdout", "stderr"):  # the lowest number that is free is taken
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r" if name == "stdin" else "w"))


def _flush_or_discard() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        discard_stdout()


def _sentence(error: Exception) -> str:
    if isinstance(error, HybridError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error} (--debug shows where)"
    return f"{type(error).__name__}: {error} (a fault of ours; --debug shows where)"


if __name__ == "__main__":
    main()
