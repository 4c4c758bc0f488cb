#!/usr/bin/env python3
"""A GGUF file of a known shape with random weights in F16, to measure speed on. Answers mean nothing.

    random_gguf.py SHAPE OUT.gguf [SEED]

Weights are normal noise scaled by fan-in, so activations stay finite. The tokenizer is byte-level,
filled up to the shape's vocabulary. Needs nothing but Python.
"""
import dataclasses
import random
import struct
import sys


@dataclasses.dataclass(frozen=True)
class Shape:
    architecture: str
    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    rope_base: float
    qkv_bias: bool
    context: int


SHAPES = {
    "tiny": Shape("llama", 2, 256, 512, 4, 2, 64, 1024, 10000.0, False, 8192),
    "qwen05b": Shape("qwen2", 24, 896, 4864, 14, 2, 64, 151936, 1000000.0, True, 32768),
    "llama1b": Shape("llama", 16, 2048, 8192, 32, 8, 64, 128256, 500000.0, False, 131072),
}

UINT32, INT32, FLOAT32, STRING, ARRAY = 4, 5, 6, 8, 9  # types of metadata
F32, F16 = 0, 1                                        # types of tensors
ALIGNMENT = 32
NOISE = 262147  # values of noise, a prime, so that rows that repeat them do not line up


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(name, kind, data):
    return text(name) + struct.pack("<I", kind) + data


def array(name, kind, items):
    return entry(name, ARRAY, struct.pack("<IQ", kind, len(items)) + b"".join(items))


def byte_tokens():
    """The printable character that stands for each byte in GPT-2's vocabulary."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return [chr(b) for b in plain] + [chr(256 + i) for i in range(len(others))]


def metadata(name, shape):
    a = shape.architecture
    tokens = byte_tokens() + ["\u0120t", "he"]
    tokens += [f"<filler{i}>" for i in range(shape.vocabulary - len(tokens) - 1)] + ["<end>"]
    types = [1] * (shape.vocabulary - 1) + [3]
    numbers = [("block_count", shape.layers), ("context_length", shape.context),
               ("embedding_length", shape.hidden), ("feed_forward_length", shape.ffn),
               ("attention.head_count", shape.heads), ("attention.head_count_kv", shape.kv_heads),
               ("rope.dimension_count", shape.head_dim), ("vocab_size", shape.vocabulary)]
    entries = [entry("general.architecture", STRING, text(a)),
               entry("general.name", STRING, text(f"random {name}"))]
    entries += [entry(f"{a}.{key}", UINT32, struct.pack("<I", value)) for key, value in numbers]
    entries += [entry(f"{a}.attention.layer_norm_rms_epsilon", FLOAT32, struct.pack("<f", 1e-5)),
                entry(f"{a}.rope.freq_base", FLOAT32, struct.pack("<f", shape.rope_base)),
                entry("tokenizer.ggml.model", STRING, text("gpt2")),
                entry("tokenizer.ggml.pre", STRING, text("gpt-2")),
                array("tokenizer.ggml.tokens", STRING, [text(t) for t in tokens]),
                array("tokenizer.ggml.token_type", INT32, [struct.pack("<i", t) for t in types]),
                array("tokenizer.ggml.merges", STRING, [text("\u0120 t"), text("h e")])]
    entries += [entry(f"tokenizer.ggml.{key}_token_id", UINT32,
                      struct.pack("<I", shape.vocabulary - 1)) for key in ("bos", "eos")]
    return entries


def tensors(shape):
    """(name, dimensions with the contiguous one first, value of all or None for noise)."""
    width, kv_width = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    yield "token_embd.weight", (shape.hidden, shape.vocabulary), None
    for layer in range(shape.layers):
        blk = f"blk.{layer}."
        yield blk + "attn_norm.weight", (shape.hidden,), 1.0
        for name, out in (("q", width), ("k", kv_width), ("v", kv_width)):
            yield blk + f"attn_{name}.weight", (shape.hidden, out), None
            if shape.qkv_bias:
                yield blk + f"attn_{name}.bias", (out,), 0.01
        yield blk + "attn_output.weight", (width, shape.hidden), None
        yield blk + "ffn_norm.weight", (shape.hidden,), 1.0
        yield blk + "ffn_gate.weight", (shape.hidden, shape.ffn), None
        yield blk + "ffn_up.weight", (shape.hidden, shape.ffn), None
        yield blk + "ffn_down.weight", (shape.ffn, shape.hidden), None
    yield "output_norm.weight", (shape.hidden,), 1.0


def tensor_bytes(dims, value):
    count = 1
    for dim in dims:
        count *= dim
    return count * (2 if value is None else 4)


def write(name, path, seed=1):
    shape = SHAPES[name]
    generator = random.Random(seed)
    noise = [generator.gauss(0, 1) for _ in range(NOISE)]
    halves = {}  # by fan-in: the noise, scaled

    def values(dims, value):
        size = tensor_bytes(dims, value)
        if value is not None:
            yield struct.pack("<f", value) * (size // 4)
            return
        if dims[0] not in halves:
            scaled = [v / dims[0] ** 0.5 for v in noise]
            halves[dims[0]] = struct.pack(f"<{NOISE}e", *scaled)
        data = halves[dims[0]]
        start = 2 * generator.randrange(NOISE)
        while size > 0:
            piece = data[start:start + size]
            yield piece
            size, start = size - len(piece), 0

    padding = lambda size: -size % ALIGNMENT
    entries, listed = metadata(name, shape), list(tensors(shape))
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(listed), len(entries)))
        file.write(b"".join(entries))
        offset = 0
        for tensor, dims, value in listed:
            kind = F16 if value is None else F32
            file.write(text(tensor) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind,
                                                  offset))
            size = tensor_bytes(dims, value)
            offset += size + padding(size)
        file.write(bytes(padding(file.tell())))
        for _, dims, value in listed:
            for piece in values(dims, value):
                file.write(piece)
            file.write(bytes(padding(tensor_bytes(dims, value))))


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in SHAPES:
        sys.exit(f"{__doc__}\nSHAPE: {', '.join(SHAPES)}")
    write(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:4]))


if __name__ == "__main__":
    main()
