"""The `hybrid` command: its subcommands load when they are called, so that `--help` is quick."""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module

import click

from ... import __version__
from ...shared_protocol.errors import HybridError

# command -> (module beside this one, attribute, one line of help)
COMMANDS = {
    "demo": ("demo", "demo", "Show the whole system on this machine, with a real small model."),
    "serve": ("serve", "serve", "Serve a model behind an OpenAI-compatible endpoint."),
    "chat": ("chat", "chat", "Talk with a model, on the device, in the cloud, or on both."),
    "run": ("run", "run", "Answer one prompt on this machine."),
    "pull": ("models", "pull", "Bring a model into the local store."),
    "list": ("models", "list_models", "List the models in the local store."),
    "show": ("models", "show", "Show what is known about a model."),
    "rm": ("models", "rm", "Remove a model from the local store."),
    "route": ("route", "route", "Explain where a prompt would be answered, and why."),
    "doctor": ("doctor", "doctor", "Check this machine: kernels, store, models."),
    "version": ("version", "version", "Print version and kernel id."),
}


DEBUG = click.Option(["--debug"], is_flag=True, expose_value=False, help="Show the traceback of an error.")


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f".{module}", __package__), attribute)
        if DEBUG not in command.params:  # people add it at the end of the line that has just failed
            command.params.append(DEBUG)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


@click.command(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="hybrid")
def cli() -> None:
    """Run language models across a device and a cloud."""


cli.params.append(DEBUG)


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
        sys.exit(error.exit_code if isinstance(error, HybridError) else 1)


def _open_closed_streams() -> None:
    """Streams that the caller has closed are empty ones, and no file that is opened later gets their number."""
    for name in ("stdin", "stdout", "stderr"):  # the lowest number that is free is taken
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r" if name == "stdin" else "w"))


def _sentence(error: Exception) -> str:
    if isinstance(error, HybridError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error} (--debug shows where)"
    return f"{type(error).__name__}: {error} (a fault of ours; --debug shows where)"


if __name__ == "__main__":
    main()
