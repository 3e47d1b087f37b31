"""The events' vocabulary is one: C++ header, native module, Python."""

import re
from enum import IntEnum
from pathlib import Path

import pytest

from strata_tui import _core
from strata_tui.analysis.fate import Fate
from strata_tui.events import (
    DRAFT_LANE,
    EVENT_DTYPE,
    HOST_LANE,
    Finish,
    Kind,
    MissCause,
    SwitchId,
    WindowFate,
)

HEADER = Path(__file__).resolve().parents[1] / "core_ext" / "trace" / "event.h"
CODE = re.sub(r"//.*", "", HEADER.read_text())


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("EventKind", Kind),
        ("WindowFate", WindowFate),
        ("MissCause", MissCause),
        ("Finish", Finish),
        ("SwitchId", SwitchId),
    ],
)
def test_numbers_are_those_of_the_header(name: str, of: type[IntEnum]) -> None:
    body = re.search(rf"enum class {name} : uint8_t {{(.*?)}};", CODE, re.DOTALL)
    assert body is not None
    in_header = {key: int(value) for key, value in re.findall(r"(\w+)\s*=\s*(\d+)", body[1])}
    in_header.pop("none", None)
    assert in_header == {member.name: member.value for member in of}


def test_fates_begin_with_those_of_the_events() -> None:
    assert [fate.name.lower() for fate in list(Fate)[: len(WindowFate)]] == [fate.name for fate in WindowFate]
    assert [fate.value for fate in list(Fate)[: len(WindowFate)]] == [fate.value for fate in WindowFate]


def test_the_native_module_tells_the_same() -> None:
    assert _core.event_dtype() == EVENT_DTYPE and EVENT_DTYPE.itemsize == 32
    kinds = {kind.name: kind.value for kind in Kind}
    assert kinds | {"none": 0} == _core.EVENT_KINDS
    assert (_core.DRAFT_LANE, _core.HOST_LANE) == (DRAFT_LANE, HOST_LANE)
    assert [fate.name for fate in WindowFate] == _core.FATES
    assert [switch.name for switch in SwitchId] == _core.SWITCHES
    assert ["", *(finish.name for finish in Finish if finish)] == _core.FINISHES  # "" while running
