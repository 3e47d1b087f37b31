import subprocess
import sys
import time

import pytest
from tests.cli.program import Strata, start

import strata_tui
from strata_tui.cli.group import COMMANDS


def test_help_loads_nothing_that_it_does_not_need() -> None:
    code = "import sys, strata_tui.cli.group; print(*sys.modules)"
    loaded = set(subprocess.check_output([sys.executable, "-c", code], text=True).split())
    assert "click" in loaded
    heavy = {"numpy", "textual", "rich", "gguf", "tokenizers", "jinja2", "strata_tui._core"}
    assert not heavy & loaded


def test_help_is_quick() -> None:
    """Measured on a quiet machine: about a tenth of a second. The bound is for busy ones."""
    times = []
    for _ in range(5):
        began = time.perf_counter()
        out, _ = start("--help").communicate()
        times.append(time.perf_counter() - began)
        assert b"Usage: strata-tui" in out
    assert min(times) < 0.5, times


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_help_names_every_command(strata: Strata, word: str) -> None:
    result = strata(word)
    assert result.code == 0
    assert all(f"  {command} " in result.out for command in COMMANDS)
    assert result.err == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(strata: Strata, command: str) -> None:
    result = strata(command, "--help")
    assert result.code == 0
    assert result.out.startswith(f"Usage: strata-tui {command}")


RUN_FLAGS = """
--profile --stages --split --device --threads --ctx --kv --chunk --overlap --no-overlap
--pipeline-windows --pipeline-max --short-read --log --draft --draft-max --draft-min-p --theta --temp
--ignore-eos --rate --top-k --top-p --min-p --repeat-penalty --seed --chat --raw --suffix-draft
"""


@pytest.mark.parametrize("command", ["run", "open"])
def test_every_run_option_of_the_contract(strata: Strata, command: str) -> None:
    shown = set(strata(command, "--help").out.replace(",", " ").split())
    assert [flag for flag in RUN_FLAGS.split() if flag not in shown] == []


def test_the_version(strata: Strata) -> None:
    assert strata("--version").out == f"strata-tui {strata_tui.__version__}\n"
