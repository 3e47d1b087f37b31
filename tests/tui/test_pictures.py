"""What a replay does not show: live consoles on the fake engine, without colour, in the terminal's own.

Several are taken of one app: to start it costs more than a picture. make pictures writes them anew.
"""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.tui.live_pictures import LIVE, Live
from tests.tui.test_screens import differs


@pytest.mark.parametrize("taken", LIVE.values(), ids=LIVE)
async def test_a_live_console_is_as_it_was(
    taken: Callable[[], AsyncIterator[Live]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "without_colour" in taken.__name__:
        monkeypatch.setenv("NO_COLOR", "1")
    different = [told async for picture in taken() if (told := differs(picture, tmp_path))]
    assert different == []
