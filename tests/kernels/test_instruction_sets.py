"""No function compiled for one instruction set may be the linker's pick for all of them."""

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parents[2] / "core_ext"
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
WEAK = re.compile(r" [WVu] (.+)$", re.MULTILINE)  # of nm: one definition of many is kept


def instruction_sets() -> dict[str, list[str]]:
    """Each file that is compiled for one, and its flags."""
    found = re.findall(
        r'kernels/cpu/(\w+)\.cpp PROPERTIES COMPILE_OPTIONS\s+"([^"]+)"',
        (CORE / "CMakeLists.txt").read_text(),
    )
    return {name: flags.split(";") for name, flags in found} | {"portable": []}


@pytest.mark.skipif(not COMPILER or not shutil.which("nm"), reason="no compiler or nm here")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="one instruction set")
@pytest.mark.parametrize("name", instruction_sets())
def test_its_code_is_its_own(name: str, tmp_path: Path) -> None:
    """Without optimisation, which would inline what is shared by mistake."""
    assert COMPILER
    flags = ["-std=c++20", "-O0", "-w", f"-I{CORE}", *instruction_sets()[name]]
    source, to = CORE / "kernels" / "cpu" / f"{name}.cpp", tmp_path / "kernels.o"
    subprocess.run([COMPILER, *flags, "-c", str(source), "-o", str(to)], check=True, timeout=600)
    symbols = subprocess.run(["nm", "-C", str(to)], check=True, capture_output=True, text=True).stdout
    assert "strata::cpu::" in symbols
    assert WEAK.findall(symbols) == []
