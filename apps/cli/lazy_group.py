"""A group whose commands are imported when they are called, so that `--help` is quick."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click

DEBUG = click.Option(["--debug"], is_flag=True, expose_value=False, help="Show the traceback of an error.")


class Lazy(NamedTuple):
    module: str  # beside the group's package, such as "models"
    attribute: str
    line: str  # of help


class LazyGroup(click.Group):
    """`commands`: name -> where it is. `default`: the command that is meant when the first argument names none."""

    def __init__(self, *, package: str, lazy: Mapping[str, Lazy], default: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._package = package
        self._lazy = lazy
        self._default = default
        self.params.append(DEBUG)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return None
        module, attribute, _ = self._lazy[cmd_name]
        command: click.Command = getattr(import_module(f".{module}", self._package), attribute)
        if DEBUG not in command.params:  # people add it at the end of the line that has just failed
            command.params.append(DEBUG)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if self._default is not None and args and args[0] not in self._lazy and args[0] not in ctx.help_option_names:
            args = [self._default, *args]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.line) for name, lazy in self._lazy.items()])
