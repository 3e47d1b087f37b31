"""train.py --data DIR --out DIR [--from 0 --to 1 --seconds 1080 --resume]: trains Strata Pebble.

Progress goes from --from to --to in the given time and decides the rates and losses; the whole run was two
pieces of about nine minutes on one H200. Needs the PyPI packages numpy, torch, safetensors and
flash-linear-attention.
"""

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
import torch
from muon import Muon
from network import C, Network, initial_weights
from safetensors.torch import save_file
from stream import Stream
from torch import Tensor
from torch.nn import Parameter

DEVICE = "cuda"
BATCH, ROWS = 32, 2048  # of a micro-batch
DEEP_SHAPE = (24, 1024)  # the part of it that further draft steps are trained on
MUON_RATE, ADAM_RATE = 0.02, 0.004
DRAFT_WEIGHT, DEEP_WEIGHT = 0.3, 0.1
AVERAGE = 0.95  # of the figures in the log
WARM_UP_STEPS = 150
MUON_WARM_UP_STEPS = 300


def rate_factor(progress: float, step: int) -> float:
    """Constant for half the run, then linear to a hundredth; a linear warm-up."""
    factor = 1.0 if progress < 0.5 else max(0.0, (1 - progress) / 0.5) * 0.99 + 0.01
    return factor * min(1, (step + 1) / WARM_UP_STEPS)


def micro_batches(progress: float) -> int:
    """65 k tokens a step at first, then 131 k."""
    return 1 if progress < 0.12 else 2


def trunk_share(progress: float) -> float:
    """How much of the drafts' target is the trunk's distribution: nothing at first, 0.8 from 0.55 on."""
    return 0.0 if progress < 0.45 else min(1.0, (progress - 0.45) / 0.1) * 0.8


def is_deep(progress: float) -> bool:
    """Whether three further draft steps are trained."""
    return progress >= 0.6


class Optimiser:
    """Muon for the matrices; AdamW for the embedding, the narrow projections and all vectors."""

    def __init__(self, weights: dict[str, Parameter], fused: bool) -> None:
        def is_matrix(name: str) -> bool:
            apart = ("embed", "in_proj_a", "in_proj_b")
            return weights[name].ndim == 2 and not any(part in name for part in apart)

        rest = {name: weight for name, weight in weights.items() if not is_matrix(name)}
        embedding = [weight for name, weight in rest.items() if "embed" in name]
        narrow = [weight for name, weight in rest.items() if "in_proj" in name]
        others = [weight for name, weight in rest.items() if "embed" not in name and "in_proj" not in name]
        self.muon = Muon(weight for name, weight in weights.items() if is_matrix(name))
        self.adam = torch.optim.AdamW(
            [
                {"params": embedding, "factor": 1.0, "weight_decay": 0.02},
                {"params": narrow, "factor": 0.75, "weight_decay": 0.02},
                {"params": others, "factor": 0.75, "weight_decay": 0.0},
            ],
            lr=1e-3,
            betas=(0.9, 0.95),
            eps=1e-10,
            fused=fused,
        )
        self._weights = weights
        self._clipped = list(rest.values())

    def step(self, factor: float, step: int) -> None:
        """Clip, step, forget the gradients."""
        torch.nn.utils.clip_grad_norm_(self._clipped, 1.0)
        for group in self.adam.param_groups:
            group["lr"] = ADAM_RATE * group["factor"] * factor
        self.adam.step()
        self.muon.step(MUON_RATE * factor, 0.85 + 0.10 * min(1, step / MUON_WARM_UP_STEPS), 0.05)
        for weight in self._weights.values():
            weight.grad = None


class Run:
    """A run, or the piece of one between two points of its progress."""

    def __init__(self, data: Path, out: Path, first: float, last: float) -> None:
        torch.manual_seed(1234)
        self.data, self.out = data, out
        self.first, self.last = first, last
        self.weights = initial_weights(DEVICE)
        self.network = Network(self.weights, ROWS, DEVICE, compiled=True)
        self.optimiser = Optimiser(self.weights, fused=True)
        self.alpha = torch.zeros((), device=DEVICE)
        self.step, self.n_tokens = 0, 0
        self.history: list[tuple[float, ...]] = []
        self.began = time.time()

    def log(self, *what: object) -> None:
        print(f"{time.time() - self.began:6.1f}", *what, flush=True)

    def loss(self, tokens: Tensor, deep: bool) -> tuple[Tensor, list[Tensor]]:
        return self.network.loss(tokens, deep, DRAFT_WEIGHT, DEEP_WEIGHT, self.alpha, DEEP_SHAPE)

    def warm_up(self) -> None:
        """Compile every variant that this piece needs, so that the schedule's clock starts warm."""
        tokens = torch.randint(C.n_vocab, (BATCH, ROWS + 2), device=DEVICE)
        for deep in (False, True) if is_deep(self.last) else (False,):
            loss, _ = self.loss(tokens, deep)
            loss.backward()
        for weight in self.weights.values():
            weight.grad = None

    def train(self, seconds: float) -> None:
        generator = torch.Generator().manual_seed(99 + int(1000 * self.first))
        prose = Stream(self.data, "prose", ROWS, generator, DEVICE)
        code = Stream(self.data, "code", ROWS, generator, DEVICE)
        self.log("tokens of prose", len(prose.tokens), "of code", len(code.tokens))
        began = time.time()
        seen: list[Tensor] = []
        while (gone := (time.time() - began) / seconds) < 1:
            progress = self.first + (self.last - self.first) * gone
            self.alpha.fill_(trunk_share(progress))
            n = micro_batches(progress)
            for _ in range(n):
                tokens = torch.cat([stream.take(BATCH // 2, BATCH // 16) for stream in (prose, code)])
                tokens = tokens[torch.randperm(BATCH, generator=generator).to(DEVICE)]
                loss, now = self.loss(tokens, is_deep(progress))
                (loss / n).backward()
                self.n_tokens += BATCH * ROWS
                seen = averaged(seen, now)
            factor = rate_factor(progress, self.step)
            self.optimiser.step(factor, self.step)
            self.step += 1
            if self.step % 10 == 0:
                torch.cuda.synchronize()
            if self.step % 100 == 0 or self.step in (1, 10, 30):
                self.report(progress, factor, [float(x) for x in seen])

    def report(self, progress: float, factor: float, seen: list[float]) -> None:
        ce, draft, *agreed = seen
        steps = " ".join(f"{share:.3f}" for share in agreed)
        self.log(
            f"step {self.step} p {progress:.3f} lr {factor:.3f} tok {self.n_tokens / 1e6:.1f}M "
            f"ce {ce:.4f} mtp {draft:.4f} acc {steps}"
        )
        self.history.append((self.step, self.n_tokens, progress, *seen))
        if not math.isfinite(ce) or (self.step == 500 and ce > 6.5):
            raise SystemExit("the loss is not where it should be")

    def held_out(self) -> dict[str, list[float]]:
        """Cross-entropy, draft loss and, along the true text, the drafts' share of the trunk's argmax."""
        found = {}
        for name in ("held_prose", "held_code"):
            tokens = torch.from_numpy(np.load(self.data / f"{name}.npy").astype(np.int64)).to(DEVICE)
            n = min(5, len(tokens) // (ROWS + 2) // BATCH)
            batches = tokens[: n * BATCH * (ROWS + 2)].view(n, BATCH, ROWS + 2)
            figures = [[float(x) for x in self.loss(batch, is_deep(self.last))[1]] for batch in batches]
            found[name] = np.mean(figures, 0).tolist()
        return found

    def resume(self) -> None:
        state = torch.load(self.out / "state.pt", map_location=DEVICE)
        for name, weight in self.weights.items():
            weight.data.copy_(state["weights"][name])
        self.optimiser.adam.load_state_dict(state["adam"])
        for shape, momentum in state["muon"].items():
            self.optimiser.muon.momentum[shape].copy_(momentum)
        self.step, self.n_tokens, self.history = state["step"], state["n_tokens"], state["history"]

    def save(self) -> None:
        """The state for a next piece; weights (matrices in bf16) and figures otherwise."""
        weights = {name: weight.detach() for name, weight in self.weights.items()}
        if self.last < 1:
            state = {
                "weights": weights,
                "adam": self.optimiser.adam.state_dict(),
                "muon": self.optimiser.muon.momentum,
                "step": self.step,
                "n_tokens": self.n_tokens,
                "history": self.history,
            }
            torch.save(state, self.out / "state.pt")
        halved = {n: w.to(torch.bfloat16) if w.ndim == 2 else w.float() for n, w in weights.items()}
        save_file({n: w.cpu().contiguous() for n, w in halved.items()}, self.out / "pebble.safetensors")
        run = {
            "step": self.step,
            "n_tokens": self.n_tokens,
            "history": self.history,
            "held_out": self.held_out(),
        }
        (self.out / "run.json").write_text(json.dumps(run))


def averaged(before: list[Tensor], now: list[Tensor]) -> list[Tensor]:
    if len(before) != len(now):
        return [x.clone() for x in now]
    return [AVERAGE * a + (1 - AVERAGE) * b for a, b in zip(before, now, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--from", type=float, default=0.0, dest="first")
    parser.add_argument("--to", type=float, default=1.0, dest="last")
    parser.add_argument("--seconds", type=float, default=1080.0)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    run = Run(options.data, options.out, options.first, options.last)
    if options.resume:
        run.resume()
    run.warm_up()
    run.train(options.seconds)
    run.save()


if __name__ == "__main__":
    main()
