"""strata-tui: see where the time goes when a language model is split over several devices.

`from strata_tui import Engine` loads the native engine when it is first asked for.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself takes 10 ms to import, in which a Ctrl-C would be a traceback
if TYPE_CHECKING:
    from typing import Any

    from strata_tui.engine import Engine, Sampling

__all__ = ["Engine", "Sampling", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("strata-tui")
        except PackageNotFoundError:  # run from the source tree
            return "0+source"
    if name in __all__:
        from strata_tui import engine

        return getattr(engine, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
