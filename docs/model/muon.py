"""Muon: momentum whose update is orthogonalised by five Newton-Schulz steps (Jordan et al. 2024)."""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn import Parameter

# Coefficients of x -> a x + (b A + c A^2) x with A = x x^T, a set for each step.
NEWTON_SCHULZ = (
    (4.0848, -6.8946, 2.9270),
    (3.9505, -6.3029, 2.6377),
    (3.7418, -5.5913, 2.3037),
    (2.8769, -3.1427, 1.2046),
    (2.8366, -3.0525, 1.2012),
)


class Muon:
    """For matrices only; those of one shape are stepped together.

    Attributes:
        momentum: shape -> [matrices of that shape, rows, columns].
    """

    def __init__(self, matrices: Iterable[Parameter]) -> None:
        self._of_shape: dict[tuple[int, ...], list[Parameter]] = {}
        for matrix in matrices:
            self._of_shape.setdefault(tuple(matrix.shape), []).append(matrix)
        self.momentum = {
            shape: torch.zeros(len(alike), *shape, device=alike[0].device)
            for shape, alike in self._of_shape.items()
        }

    @torch.no_grad()
    def step(self, rate: float, momentum: float, decay: float) -> None:
        for shape, matrices in self._of_shape.items():
            gradient = torch.stack([matrix.grad for matrix in matrices])
            average = self.momentum[shape]
            average.lerp_(gradient, 1 - momentum)
            update = orthogonalised(gradient.lerp(average, momentum).to(torch.bfloat16))
            update = update.float() * (-rate * max(1, shape[0] / shape[1]) ** 0.5)
            torch._foreach_mul_(matrices, 1 - rate * decay)
            torch._foreach_add_(matrices, list(update.unbind(0)))


def orthogonalised(x: Tensor) -> Tensor:
    """Each matrix of x [n, rows, columns] with its singular values brought near 1."""
    tall = x.shape[1] > x.shape[2]
    if tall:
        x = x.mT
    x = x / (x.norm(dim=(1, 2), keepdim=True) * 1.01 + 1e-7)
    for a, b, c in NEWTON_SCHULZ:
        gram = x @ x.mT
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x.mT if tall else x
