"""strata-tui web refuses before it serves what the console would refuse."""

import importlib.util
import socket

import pytest
from tests.cli.program import QWEN35, Strata


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--device", "warp"), "warp"),
        (("--theta", "high"), "expected a number"),
        (("nowhere.gguf",), "expected a model file, got nowhere.gguf"),
        (("--qqq",), "--qqq"),
        (("--port", "70000"), "65535"),
    ],
)
def test_what_open_would_refuse(strata: Strata, arguments: tuple[str, ...], said: str) -> None:
    pytest.importorskip("textual_serve")
    assert said in strata("web", *arguments).error


def test_a_port_that_is_taken(strata: Strata) -> None:
    pytest.importorskip("textual_serve")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"expected a free port, got {port}" in strata("web", QWEN35, "--port", port).error


def test_without_the_extra_the_line_says_how_to_get_it(
    strata: Strata, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install 'strata-tui[web]'" in strata("web", QWEN35).error
