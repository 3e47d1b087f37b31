import os
import sys

import pytest
from tests.cli.program import Result, Strata

from strata_tui.cli import main


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("STRATA_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def strata(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Strata:
    """Runs a command line within the test's process; its output is no terminal."""

    def run(*args: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["strata-tui", *map(str, args)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Result(int(ended.value.code or 0), out, err)

    return run
