"""Arms from the command line: each one's flags over those that hold for all."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from strata_tui.bench.arms import Arm, name_and_flags, sharing_engines
from strata_tui.cli.run_options import gather, run_options
from strata_tui.errors import BadInput
from strata_tui.options import Sampling

OF_ALL_ARMS = {name: "it changes the text" for name in (*Sampling.__dataclass_fields__, "chat", "ignore_eos")}
OF_ALL_ARMS["log"] = "there is one log"

_SAME_THING = (("stages", "split"), ("draft", "suffix_draft"))
"""Where an arm says one of these, what holds for all of the other one gives way."""


@click.command("arm", add_help_option=False)
@run_options
def _flags(**_: Any) -> None:
    """Never run: a parser of an arm's flags."""


def read_arms(
    texts: Sequence[str], options: Mapping[str, Any], model: Path | None, **request: Any
) -> list[Arm]:
    """Arms from `NAME: flags`, with what was given beside them.

    Raises:
        BadInput: an arm that can't be read, a name twice, a flag that would make it another text.
    """
    arms: list[Arm] = []
    for text in texts:
        name, flags = name_and_flags(text)
        if any(arm.name == name for arm in arms):
            raise BadInput(f"--arm: expected names that differ, got {name!r} twice")
        merged = _merged(options, _given(name, flags))
        try:
            arms.append(Arm(name, flags, gather(merged, model, **request)))
        except BadInput as error:
            raise BadInput(f"--arm {name}: {error}") from None
    return sharing_engines(arms)


def _given(name: str, flags: str) -> dict[str, Any]:
    """What an arm's flags say; nothing else."""
    try:
        context = _flags.make_context("arm", shlex.split(flags))
    except ValueError as error:  # a quote that is not closed
        raise BadInput(f"--arm {name}: {error} in {flags!r}") from None
    except click.ClickException as error:
        raise BadInput(f"--arm {name}: expected run options, {error.format_message()}") from None
    given = {
        key: value
        for key, value in context.params.items()
        if context.get_parameter_source(key) == click.core.ParameterSource.COMMANDLINE
    }
    for key, why in OF_ALL_ARMS.items():
        if key in given:
            flag = {"temperature": "temp", "chat": "chat/--raw"}.get(key, key.replace("_", "-"))
            raise BadInput(f"--arm {name}: expected --{flag} for all arms, beside --arm: {why}")
    return given


def _merged(for_all: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(for_all)
    for names in _SAME_THING:
        if any(name in given for name in names):
            merged |= {name: False if name == "suffix_draft" else None for name in names}
    return merged | dict(given)
