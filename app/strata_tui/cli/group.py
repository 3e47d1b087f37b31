"""The group of commands: `strata-tui model.gguf` opens the console, a mistyped command gets a suggestion."""

from __future__ import annotations

import importlib
import os

import click

# Commands are imported when they are run or asked for help: `--help` stays quick.
COMMANDS = {
    "open": "open a model in the console (the default: strata-tui model.gguf)",
    "web": "the console in a browser on this machine",
    "run": "decode a prompt without the console",
    "eval": "one pass over given tokens: logits and hidden rows to a file",
    "check": "the proof that the switches don't change the text",
    "bench": "measure arms in turn: is one faster?",
    "replay": "a recording in the console",
    "compare": "two recordings of the same texts, aligned at token index",
    "export": "a recording as a Chrome trace or a table",
    "plan": "where the layers go and why; what each switch would give",
    "inspect": "what is in a model file",
    "devices": "what devices there are",
    "profiles": "the run profiles that ship",
}


class Commands(click.Group):
    """Puts `open` first where the first word is no command but looks like a model or an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in COMMANDS and _means_open(args[0])):
            args = ["open", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"strata_tui.cli.{name}_command")
        command = module.command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = (
                f"did you mean {near[0]}?"
                if near
                else f"expected one of {', '.join(COMMANDS)}, or a model file"
            )
            raise click.UsageError(f"no command or file {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)


def _means_open(word: str) -> bool:
    if word in ("--help", "-h", "--version"):
        return False
    return (
        word.startswith("-") or word.endswith(".gguf") or "/" in word or "\\" in word or os.path.exists(word)
    )


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from strata_tui import __version__

    click.echo(f"strata-tui {__version__}")
    ctx.exit()


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
def cli() -> None:
    """See where the time goes when a language model is split over several devices.

    strata-tui MODEL.gguf opens the console; without MODEL the embedded default model.
    """
