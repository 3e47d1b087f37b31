"""What went wrong, in the engine's words, and what can be done."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import Static

ADVICE = (
    ("[open]", "is that where the file is? strata-tui without a file opens the embedded model"),
    ("[gguf]", "the file is cut or damaged: fetch it again; strata-tui inspect FILE tells what can be read"),
    ("[tokenizer]", "strata-tui inspect FILE tells what is in it; strata-tui run --tokens takes ids"),
    ("[chat]", "--raw sends prompts as they are"),
    ("[engine] needs ", "a smaller --ctx or --chunk and --kv f16 take less of it"),
    ("[engine] not enough memory", "a smaller --ctx, --kv f16 and --pipeline-max 0 take less of it"),
    ("[model]", "strata-tui inspect FILE tells what is in it"),
    ("--", "without that option the program chooses; strata-tui plan FILE proposes a placement"),
    ("[device]", "strata-tui devices tells what there is; strata-tui plan FILE proposes a placement"),
    ("[engine]", "strata-tui plan FILE proposes a placement"),
)
"""By how an error begins, what a person can do about it."""


def advice(error: str) -> str:
    """What to do about an opening that failed."""
    return next(
        (line for begin, line in ADVICE if error.startswith(begin)),
        "strata-tui inspect FILE tells what is in a model file",
    )


class Problem(Static):
    """A panel that is there only while there is something to say."""

    def tell(self, line: str, advice: str) -> None:
        """Show one error line and what to do."""
        self.update(Text.assemble((line, "bold"), "\n", advice))
        self.display = True

    def clear(self) -> None:
        """Nothing is wrong any more."""
        self.display = False
