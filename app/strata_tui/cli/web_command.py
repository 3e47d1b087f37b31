"""strata-tui web: the console in a browser."""

from __future__ import annotations

import importlib.util

import click

from strata_tui.cli import open_command
from strata_tui.cli.numbers import Whole
from strata_tui.cli.run_options import gather
from strata_tui.errors import BadInput


@click.command("web", context_settings={"ignore_unknown_options": True})
@click.option(
    "--port",
    metavar="N",
    type=Whole(0, 65535),
    default=8023,
    show_default=True,
    help="Of 127.0.0.1; 0: any that is free.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[MODEL] [OPTIONS OF open]")
def command(port: int, arguments: tuple[str, ...]) -> int:
    """The console in a browser on this machine.

    Takes what strata-tui open takes. Each page that is opened has an engine of its own. Needs the extra
    web: pip install 'strata-tui[web]'.
    """
    if importlib.util.find_spec("textual_serve") is None:
        raise BadInput("web: expected the package textual-serve, got none: pip install 'strata-tui[web]'")
    _check(arguments)
    from strata_tui.tui.web import serve

    try:
        serve(arguments, port)
    except OSError as error:
        raise BadInput(f"web: expected a free port, got {port} ({error.strerror or error})") from None
    return 0


def _check(arguments: tuple[str, ...]) -> None:
    """What `open` would refuse is refused now, not in the browser."""
    context = open_command.command.make_context("strata-tui web", list(arguments))
    options = dict(context.params)
    model = options.pop("model")
    if model is not None and not model.is_file():
        raise BadInput(f"web: expected a model file, got {model}")
    for name in ("prompt", "max_tokens", "ascii_only"):
        options.pop(name)
    gather(options, model, for_console=True)
