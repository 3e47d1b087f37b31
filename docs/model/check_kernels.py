"""check_kernels.py: on a GPU, fla's kernels against the recurrence, the network against reference.py."""

import torch
from delta_kernels import chunked_delta_rule
from network import C, Network, delta_rule, initial_weights, trunk_loss

from reference import Reference

DEVICE = "cuda"
BATCH, ROWS = 32, 2048  # the shapes that training compiles
KERNEL_TOLERANCE = 0.03  # relative, in bf16
NETWORK_TOLERANCE = 0.06


def check_kernels() -> None:
    """Values and gradients of o, q, k, v, log decay and beta."""
    shape = (2, 256)
    q, k = (torch.randn(*shape, C.n_k_heads, C.delta_head_dim, device=DEVICE) for _ in range(2))
    v, grad = (torch.randn(*shape, C.n_v_heads, C.delta_head_dim, device=DEVICE) for _ in range(2))
    log_decay = -torch.rand(*shape, C.n_v_heads, device=DEVICE) * 1.5
    beta = torch.rand(*shape, C.n_v_heads, device=DEVICE)
    exact = [x.double().requires_grad_() for x in (q, k, v, log_decay, beta)]
    halved = [x.to(torch.bfloat16) if x is not log_decay else x.clone() for x in (q, k, v, log_decay, beta)]
    halved = [x.requires_grad_() for x in halved]
    expected, found = delta_rule(*exact), chunked_delta_rule(*halved)
    expected = [expected, *torch.autograd.grad(expected, exact, grad.double())]
    found = [found, *torch.autograd.grad(found, halved, grad.to(torch.bfloat16))]
    off = [float((a - b).norm() / b.norm()) for a, b in zip(found, expected, strict=True)]
    print("fla against the recurrence (o, dq, dk, dv, dg, dbeta):", *(f"{x:.4f}" for x in off))
    assert max(off) < KERNEL_TOLERANCE


@torch.no_grad()
def check_network() -> None:
    """Logits with weights that let every block speak (as initialised, blocks write almost nothing)."""
    weights = initial_weights(DEVICE)
    generator = torch.Generator(device=DEVICE).manual_seed(5)
    for name, weight in weights.items():
        if name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight")):
            weight.normal_(0, 0.8 * weight.shape[1] ** -0.5, generator=generator)
        elif weight.ndim == 1 and "norm" in name:
            weight.add_(0.1 * torch.randn(weight.shape, generator=generator, device=DEVICE))
    tokens = torch.randint(C.n_vocab, (BATCH, ROWS + 1), device=DEVICE)
    x = Network(weights, ROWS, DEVICE, compiled=True).trunk(tokens[:, :ROWS])
    norm, embedding = weights["model.norm.weight"], weights["model.embed_tokens.weight"]
    _, _, found, _ = trunk_loss(x[:2, :256], norm, embedding, tokens[:2, 1:257])
    reference = Reference(weights, C, DEVICE)
    _, expected = reference.trunk(tokens[:2, :256], reference.new_state())
    off = float((found.float() - expected).norm() / expected.norm())
    same = float((found.argmax(-1) == expected.argmax(-1)).float().mean())
    print(f"network against the reference: logits off by {off:.4f}, the same top token at {same:.4f}")
    assert off < NETWORK_TOLERANCE


if __name__ == "__main__":
    check_kernels()
    check_network()
