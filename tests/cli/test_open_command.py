from pathlib import Path

import pytest
from tests.cli.program import LLAMA, QWEN35, Strata


def test_without_a_terminal_it_runs_headless_and_says_so_once(strata: Strata) -> None:
    result = strata("open", QWEN35, "-p", "x", "-n", "4")
    assert result.code == 0
    assert result.out
    assert result.err.count("no console here") == 1
    assert "not all a terminal" in result.err
    assert strata("run", QWEN35, "-p", "x", "-n", "4").out == result.out


@pytest.mark.parametrize("first", ["-n", LLAMA])
def test_open_needs_no_name(strata: Strata, first: object) -> None:
    more = ("4", LLAMA) if first == "-n" else ("-n", "4")
    result = strata(first, *more, "-p", "x")
    assert result.code == 0, result.err
    assert "no console here" in result.err


def test_without_a_model_the_embedded_one_reads_well_and_always_the_same(strata: Strata) -> None:
    result = strata("-n", "12")
    assert result.code == 0
    assert len(result.out) > 20
    assert "12 tokens (length)" in result.err
    assert strata("open", "-n", "12").out == result.out
    assert strata("open", "-n", "12", "--seed", "8").out != result.out


def test_a_model_with_a_chat_template_is_asked_in_its_form(strata: Strata) -> None:
    chat, raw = (strata("open", QWEN35, "-p", "x", "-n", "1", flag).err for flag in ("--chat", "--raw"))
    n_chat, n_raw = (int(err.split("prompt: ")[1].split()[0]) for err in (chat, raw))
    assert n_chat > n_raw == 1
    assert strata("open", QWEN35, "-p", "x", "-n", "1").err.split("read")[0] == chat.split("read")[0]


def test_its_log_goes_to_a_file_too(strata: Strata, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRATA_STAGE_TRIM", "1")
    result = strata("open", QWEN35, "-p", "x", "-n", "2", "--log", tmp_path / "log")
    assert "STRATA_STAGE_TRIM" in (tmp_path / "log").read_text()
    assert "STRATA_STAGE_TRIM" not in result.err
