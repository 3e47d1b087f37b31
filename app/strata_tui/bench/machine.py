"""What a figure has to carry: the machine it was measured on, and how busy that was."""

from __future__ import annotations

import os
import platform
from typing import Any

from strata_tui.engine import cpu_info


def machine() -> dict[str, Any]:
    """cpu, cores (usable ones), kernels (the best instruction set that there are kernels for), system."""
    info = cpu_info()
    return {
        "cpu": info["model"] or "processor",
        "cores": len(info["cores"]),
        "kernels": info["best"],
        "system": f"{platform.system()} {platform.machine()}",
    }


def load_average() -> float | None:
    """Over the last minute; None where the system doesn't say."""
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return None
