#!/usr/bin/env python3
"""gemma-3-270m as F32 of width 768 with a part of its vocabulary, to compare quantisations.

    python3 tests/tools/widen_gemma.py GEMMA.gguf TEXT OUT.gguf

K types need rows of a multiple of 256 values, and Gemma's 640 are none: quantisers then take other
types. Zeros in the new columns and norms times sqrt(640 / 768) leave the function as it was. The
first 20,000 tokens and the single characters of TEXT are kept, which makes the head, most of the
work otherwise, a tenth; text has somewhat more tokens then. Needs gguf and numpy.
"""

import math
import pathlib
import sys

import gguf
import numpy as np

WIDTH = 768
COMMON_TOKENS = 20000


def kept_tokens(tokens, text):
    characters = set(text) | {chr(code) for code in range(32, 127)} | {"\u2581", "\n"}
    kept = list(range(COMMON_TOKENS))
    kept += [i for i in range(COMMON_TOKENS, len(tokens)) if tokens[i] in characters]
    while len(kept) % 16:
        kept.append(kept[-1] + 1)
    return np.array(kept)


def copy_fields(fields, kept, width, writer):
    vocabulary = len(fields["tokenizer.ggml.tokens"].contents())
    for name, field in fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        value = field.contents()
        inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        if name == "gemma3.embedding_length":
            value = WIDTH
        elif name == "gemma3.attention.layer_norm_rms_epsilon":
            value = value * width / WIDTH
        elif inner is not None and len(value) == vocabulary:
            value = [value[i] for i in kept]
        writer.add_key_value(name, value, field.types[0], inner)


def widened(name, values, kept, factor):
    """factor: of norms, whose mean is over more values, and of the embedding, which Gemma
    multiplies by sqrt(width); the head is tied to it, so the last norm has no factor."""
    kind = name.split(".")[-2]
    if kind == "token_embd":
        values = values[kept] * factor
    if kind in ("attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm"):
        values = values * factor
    rows = kind in ("attn_output", "ffn_down")
    if kind in ("attn_q_norm", "attn_k_norm"):
        return values
    padding = [(0, 0)] * values.ndim
    axis = 0 if rows else values.ndim - 1
    padding[axis] = (0, WIDTH - values.shape[axis])
    return np.pad(values, padding)


def main():
    reader = gguf.GGUFReader(sys.argv[1])
    fields = reader.fields
    width = fields["gemma3.embedding_length"].contents()
    text = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
    kept = kept_tokens(fields["tokenizer.ggml.tokens"].contents(), text)
    writer = gguf.GGUFWriter(sys.argv[3], "gemma3")
    copy_fields(fields, kept, width, writer)
    factor = np.float32(math.sqrt(width / WIDTH))
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        writer.add_tensor(tensor.name, widened(tensor.name, values, kept, factor))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
