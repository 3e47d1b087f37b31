"""Random quantised matrices: any quants, but scales as a quantiser would choose them."""

from functools import cache

import gguf
import numpy as np
import numpy.typing as npt
from gguf import GGMLQuantizationType as Type

Bytes = npt.NDArray[np.uint8]


def random_matrix(
    kind: str, n_out: int, n_in: int, deviation: float, rng: np.random.Generator
) -> tuple[Bytes, Type]:
    """Rows [n_out, row_bytes] of type `kind`, with values of about this deviation, and the type."""
    number = Type[kind]
    size, n_bytes = gguf.GGML_QUANT_SIZES[number]
    if size == 1:
        return _numbers(kind, rng.normal(0, deviation, (n_out, n_in)).astype(np.float32)), number
    blocks = rng.integers(0, 256, (n_out * n_in // size, n_bytes), np.uint8)
    _set_scales(kind, blocks, deviation / _unit_deviation(kind), rng)
    return blocks.reshape(n_out, -1), number


def values_of(matrix: Bytes, number: Type) -> npt.NDArray[np.float64]:
    """What rows of blocks stand for, [n_out, n_in]; in one piece, as the library goes 16 rows at a time."""
    return gguf.quants.dequantize(matrix.reshape(1, -1), number).reshape(len(matrix), -1).astype(np.float64)


@cache
def _unit_deviation(kind: str) -> float:
    rng = np.random.default_rng(0)
    blocks = rng.integers(0, 256, (4096, gguf.GGML_QUANT_SIZES[Type[kind]][1]), np.uint8)
    _set_scales(kind, blocks, 1.0, rng)
    return float(np.sqrt(np.mean(values_of(blocks, Type[kind]) ** 2)))


def _numbers(kind: str, values: npt.NDArray[np.float32]) -> Bytes:
    if kind == "BF16":
        return np.ascontiguousarray(values.view(np.uint16)[:, 1::2]).view(np.uint8)  # the high half of each
    return values.astype(np.float16 if kind == "F16" else np.float32).view(np.uint8)


def _set_scales(kind: str, blocks: Bytes, unit: float, rng: np.random.Generator) -> None:
    """Scales that vary by a third around `unit`, mins that lift the quants' middle to about zero.

    The layouts are ggml's (block_q4_0 ..). Where a type has no min its scales have either sign, as ggml's
    quantiser makes them: the quants' own middle is half a step off zero.
    """
    n = len(blocks)
    d = unit * rng.uniform(0.7, 1.3, n)
    signed = d * rng.choice([-1, 1], n)
    if kind in ("Q4_0", "Q5_0", "Q8_0"):
        _put_half(blocks, 0, signed)
    elif kind in ("Q4_1", "Q5_1"):
        _put_half(blocks, 0, d)
        _put_half(blocks, 2, -(15.5 if kind == "Q5_1" else 7.5) * d * rng.uniform(0.8, 1.2, n))
    elif kind == "Q2_K":
        _put_half(blocks, 80, d / 12)
        _put_half(blocks, 82, 1.5 * d / 12)
        scales, mins = rng.integers(8, 16, (2, n, 16), np.uint8)
        blocks[:, :16] = scales | mins << 4
    elif kind == "Q3_K":
        _put_half(blocks, 108, d / 24)
        _put_six_bits(blocks, 96, 32 + rng.integers(16, 32, (n, 16)) * rng.choice([-1, 1], (n, 16)))
    elif kind == "Q6_K":
        scales = rng.integers(64, 128, (n, 16)) * rng.choice([-1, 1], (n, 16))
        blocks[:, 192:208] = scales.astype(np.int8).view(np.uint8)
        _put_half(blocks, 208, d / 96)
    elif kind in ("Q4_K", "Q5_K"):
        _put_half(blocks, 0, d / 48)
        _put_half(blocks, 2, (15.5 if kind == "Q5_K" else 7.5) * d / 48)
        scales, mins = rng.integers(32, 64, (2, n, 8), np.uint8)
        blocks[:, 4:8] = scales[:, :4] | scales[:, 4:] >> 4 << 6
        blocks[:, 8:12] = mins[:, :4] | mins[:, 4:] >> 4 << 6
        blocks[:, 12:16] = scales[:, 4:] & 15 | mins[:, 4:] << 4
    elif kind == "IQ1_M":  # a nibble of d on top of each word of scales
        half = (signed / 8).astype(np.float16).view(np.uint16)
        blocks[:, 49:56:2] = blocks[:, 49:56:2] & 15 | ((half[:, None] >> [0, 4, 8, 12] & 15) << 4).astype(
            np.uint8
        )
    elif kind == "MXFP4":  # a power of two
        blocks[:, 0] = 128 + np.round(np.log2(d))
    elif kind == "NVFP4":  # 4 bits of exponent, 3 of mantissa
        exponent = 10 + np.floor(np.log2(d[:, None])).astype(int)
        blocks[:, :4] = np.clip(exponent, 1, 14) << 3 | rng.integers(0, 8, (n, 4))
    elif kind == "TQ2_0":  # the fourth value of two bits is one that no quantiser uses
        blocks[:, :64] = (rng.integers(0, 3, (n, 64, 4)) << [0, 2, 4, 6]).sum(axis=2)
        _put_half(blocks, 64, signed)
    else:
        _put_half(blocks, 52 if kind == "TQ1_0" else 0, signed)


def _put_six_bits(blocks: Bytes, offset: int, scales: npt.NDArray[np.integer]) -> None:
    """Q3_K's 16 scales of six bits."""
    low, high = scales & 15, scales >> 4
    blocks[:, offset : offset + 8] = low[:, :8] | low[:, 8:] << 4
    blocks[:, offset + 8 : offset + 12] = sum(high[:, 4 * j : 4 * j + 4] << 2 * j for j in range(4))


def _put_half(blocks: Bytes, offset: int, values: npt.NDArray[np.float64]) -> None:
    blocks[:, offset : offset + 2] = values.astype(np.float16)[:, None].view(np.uint8)
