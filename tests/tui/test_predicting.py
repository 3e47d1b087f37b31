"""What is said of switches before they are flipped."""

from strata_tui.tui.predicting import Model, Predicted, prediction_line


def test_a_line_of_what_each_switch_would_give() -> None:
    """What the model is off stands behind what it says, not behind what it doesn't."""
    overlap = Predicted("overlap", True, 0.25, 31.58)
    assert prediction_line(Model((overlap,), -0.03, ("pipeline_windows",))) == (
        "o (overlap=1) +25% tok/s, 31.6 ms/window (of what is in force it is -3% off); "
        "w: not predicted, more stages at once than cores, and not pinned to them"
    )
    assert prediction_line(Model((), 0.0)) == ""
    assert prediction_line(Model((), 0.4, ("pipeline_windows",))).startswith("the model is +40% off")
