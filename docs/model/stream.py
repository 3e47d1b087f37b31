"""Token windows out of a long file of documents, which token 0 ends."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor


class Stream:
    """Windows of rows + 2 tokens without end: an epoch's each once, in a random order, at a random phase.

    Args:
        folder: holds prose*.npy and code*.npy (uint16 token ids), joined in the order of their names.
        kind: "prose" or "code".
    """

    def __init__(self, folder: Path, kind: str, rows: int, generator: torch.Generator, device: str) -> None:
        parts = [np.load(path) for path in sorted(folder.glob(f"{kind}*.npy"))]
        self.tokens = torch.from_numpy(np.concatenate(parts).astype(np.int32)).to(device)
        self._begins = (self.tokens[: -rows - 8] == 0).nonzero()[:, 0].int() + 1  # of documents
        self._rows = rows
        self._generator = generator
        self._device = device
        self.epoch = -1
        self._new_epoch()

    def _new_epoch(self) -> None:
        self.epoch += 1
        self.n_windows = (len(self.tokens) - 2 * self._rows - 8) // self._rows
        self._order = torch.randperm(self.n_windows, generator=self._generator).to(self._device)
        self._phase = int(torch.randint(self._rows, (1,), generator=self._generator))
        self._next = 0

    def take(self, n: int, at_begins: int) -> Tensor:
        """n windows [n, rows + 2], of which `at_begins` start where a random document does."""
        if self._next + n > self.n_windows:
            self._new_epoch()
        chosen = self._order[self._next : self._next + n - at_begins]
        starts = chosen.long() * self._rows + self._phase
        self._next += n - at_begins
        if at_begins:
            documents = torch.randint(len(self._begins), (at_begins,), generator=self._generator).to(
                self._device
            )
            starts = torch.cat([self._begins[documents].long(), starts])
        return self.tokens[starts[:, None] + torch.arange(self._rows + 2, device=self._device)[None]].long()
