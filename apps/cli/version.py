"""`hybrid version`: what answers that are equal bit for bit must have in common."""

from __future__ import annotations

import platform

import click

from ... import __version__
from .output import json_option, print_json


@click.command()
@json_option
def version(as_json: bool) -> None:
    """Print version and kernel id."""
    from ...npu_backends.cpu.library import describe  # loads NumPy, which --help does without
    from ...npu_backends.cpu.select import serving_kernel_id

    native = describe()
    kernel_id = serving_kernel_id()
    facts = {
        "version": __version__,
        "kernel_id": kernel_id,
        "isa": native.isa if kernel_id == native.kernel_id else None,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    if as_json:
        print_json(facts)
    else:
        click.echo(f"hybrid {__version__}, kernels {kernel_id}{'' if facts['isa'] else ' (the NumPy reference)'}, Python {facts['python']}")
