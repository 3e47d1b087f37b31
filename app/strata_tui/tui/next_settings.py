"""What the key of a switch sets next."""

from __future__ import annotations

from typing import Any

THETAS = (0.0, 0.2, 0.4, 0.6, 0.8)


def next_windows(now: int, most: int) -> int:
    """0, 2 .. as many as there is memory for, and round."""
    return next((n for n in (0, *range(2, most + 1)) if n > now), 0)


def next_theta(now: float) -> float:
    """The next gate, and round."""
    return next((theta for theta in THETAS if theta > now + 1e-6), THETAS[0])


def next_draft(now: str, has_draft_layer: bool) -> str:
    """The next source of drafts, and round."""
    sources = ["mtp", "lookup", "none"] if has_draft_layer else ["lookup", "none"]
    at = sources.index(now) if now in sources else -1
    return sources[(at + 1) % len(sources)]


def next_settings(in_force: dict[str, Any], n_stages: int, pipeline_max: int) -> dict[str, Any]:
    """Of the switches that a prediction can be made for: what would change something as things are."""
    settings: dict[str, Any] = {}
    windows = in_force.get("pipeline_windows", 0)
    if n_stages > 1:
        settings["overlap"] = not in_force.get("overlap", False)
    if pipeline_max > 1:
        settings["pipeline_windows"] = next_windows(windows, pipeline_max)
    if windows > 1:
        settings["theta"] = next_theta(in_force.get("theta", 0.0))
    if in_force.get("draft_max", 0) > 1:
        settings["draft_max"] = in_force["draft_max"] - 1
    return settings
