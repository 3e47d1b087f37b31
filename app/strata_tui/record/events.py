from strata_tui.events import *  # noqa: F403  moved to strata_tui.events; gone soon
