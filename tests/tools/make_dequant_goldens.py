#!/usr/bin/env python3
"""Writes tests/kernels/formats/data/dequant_*.bin: random blocks of each GGUF format and the floats that
the gguf package makes of them. Needs numpy and gguf (the versions pinned for the tests).

    python3 tests/tools/make_dequant_goldens.py tests/kernels/formats/data

A file is: uint32 number of blocks, the blocks, the floats; little-endian. Scales are drawn as
finite halves of either sign, subnormals included; all other bytes are uniform.
"""
import pathlib
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import dequantize

# Byte offsets of the half-precision scales in a block.
HALVES = {
    T.F16: [0], T.BF16: [], T.Q8_0: [0], T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0],
    T.Q5_1: [0, 2], T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2],
    T.Q6_K: [208], T.IQ4_NL: [0],
}


def random_halves(rng, count):
    values = rng.normal(size=count).astype(np.float16)
    values[:: 5] *= np.float16(1e-7)  # subnormal
    return values.view(np.uint8).reshape(count, 2)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(20240607)
    for kind, offsets in HALVES.items():
        values, size = GGML_QUANT_SIZES[kind]
        count = 64 if values == 1 else 12 if values == 32 else 4
        blocks = rng.integers(0, 256, size=(count, size), dtype=np.uint8)
        for offset in offsets:
            blocks[:, offset:offset + 2] = random_halves(rng, count)
        if kind == T.BF16:
            blocks = (rng.normal(size=count).astype(np.float32).view(np.uint32) >> 16).astype(
                np.uint16).view(np.uint8).reshape(count, 2)
        floats = dequantize(blocks.reshape(1, -1), kind).astype("<f4")
        assert floats.size == count * values and np.isfinite(floats).all()
        with open(folder / f"dequant_{kind.name.lower()}.bin", "wb") as file:
            file.write(np.uint32(count).astype("<u4").tobytes())
            file.write(blocks.tobytes())
            file.write(floats.tobytes())


main()
