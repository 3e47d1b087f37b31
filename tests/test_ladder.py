"""The ladder of CONTRIBUTING.md: a level includes and imports only those before it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[1]
CORE = TREE / "core_ext"
APP = TREE / "app" / "strata_tui"

CORE_LEVELS = ["base", "trace", "kernels", "model", "device", "split", "decode", "engine", "bind"]
NATIVE_IMPORTERS = {"engine.py", "gguf_file.py"}
# Faces may import everything below them; `cli` opens the console, but only when asked to (inside a function).
APP_LEVELS = {"": 0, "record": 1, "analysis": 1, "check": 1, "bench": 1, "plan": 1, "cli": 2, "tui": 2}


def core_level(path: Path) -> str:
    """core_ext/split/stage.h -> split; core_ext/engine.cpp -> engine."""
    return path.parts[0] if len(path.parts) > 1 else path.stem


def core_files() -> list[Path]:
    return sorted(p for p in CORE.rglob("*") if p.suffix in {".h", ".cpp", ".inl"})


@pytest.mark.parametrize("path", core_files(), ids=lambda p: str(p.relative_to(CORE)))
def test_core_file_includes_only_levels_before_its_own(path: Path) -> None:
    level = core_level(path.relative_to(CORE))
    assert level in CORE_LEVELS, f"{path}: folder {level} is no level of the ladder"
    for include in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE):
        target = Path(include)
        if not (CORE / target).exists():  # beside the file itself
            assert (path.parent / target).exists(), f"{path}: {include} is not in the tree"
            continue
        below = core_level(target)
        assert CORE_LEVELS.index(below) <= CORE_LEVELS.index(level), f"{path}: {level} includes {include}"


def app_files() -> list[Path]:
    return sorted(APP.rglob("*.py"))


def app_package(module: str) -> str:
    """strata_tui.record.trace -> record; strata_tui.engine and strata_tui -> "" (the modules at the top)."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in APP_LEVELS else ""


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every module that a file imports, in full, and whether it does so at its top level."""
    tree = ast.parse(path.read_text(), str(path))
    package = ("strata_tui", *path.relative_to(APP).parent.parts)
    inner = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*start, *([node.module] if node.module else [])])
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            yield name, id(node) not in inner


@pytest.mark.parametrize("path", app_files(), ids=lambda p: str(p.relative_to(APP)))
def test_app_file_imports_only_levels_before_its_own(path: Path) -> None:
    place = path.relative_to(APP)
    package = place.parts[0] if len(place.parts) > 1 else ("cli" if place.name == "__main__.py" else "")
    for name, at_top in imports(path):
        top = name.split(".")[0]
        if top in {"textual", "rich"}:
            assert package == "tui", f"{place} imports {name}: only tui/ may"
        if name == "strata_tui._core" or name.startswith("strata_tui._core."):
            assert str(place) in NATIVE_IMPORTERS, f"{place} imports the native module"
        if top != "strata_tui" or package not in APP_LEVELS:
            continue
        target = app_package(name)
        assert APP_LEVELS[target] <= APP_LEVELS[package], f"{place} imports {name}"
        assert (package, target) != ("tui", "cli"), f"{place} imports {name}: the faces stand side by side"
        if package == "cli" and target == "tui":
            assert not at_top, f"{place} imports {name} at its top: --help would load textual"


def test_every_folder_of_the_app_has_its_level() -> None:
    packages = {p.parent.name for p in APP.glob("*/*.py")}
    assert packages <= set(APP_LEVELS)


def test_the_native_module_is_imported_somewhere() -> None:
    """Guards the test above: a renamed module would make it pass for ever."""
    importers = {p.name for p in app_files() if any(name == "strata_tui._core" for name, _ in imports(p))}
    assert importers == NATIVE_IMPORTERS
