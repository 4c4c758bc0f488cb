#!/usr/bin/env python3
"""Perplexity of a text file under llama.cpp, as one line of JSON like engine_perplexity's.

    python3 tests/tools/perplexity_peer.py MODEL.gguf TEXT [THREADS [WINDOW [exact]]]

With "exact", llama.cpp gets the same weights written out as F32. It multiplies quantised weights
with activations rounded to 8 bits, as hexad does unless asked for f32. Needs llama-cpp-python, gguf
and numpy.
"""

import json
import pathlib
import sys
import tempfile

import gguf
import llama_cpp
import numpy as np


def write_dequantised(source, target):
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), field.types[0], inner)
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        writer.add_tensor(tensor.name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    model, text = sys.argv[1], pathlib.Path(sys.argv[2]).read_bytes()
    threads = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    folder = tempfile.TemporaryDirectory()
    window = int(sys.argv[4]) if len(sys.argv) > 4 else 2048
    if sys.argv[5:] == ["exact"]:
        exact = folder.name + "/exact.gguf"
        write_dequantised(model, exact)
        model = exact
    llm = llama_cpp.Llama(model, n_ctx=window, n_batch=512, n_threads=threads,
                          n_threads_batch=threads, logits_all=True, verbose=False)
    begin = llm.tokenize(b"", add_bos=True, special=False)
    ids = llm.tokenize(text, add_bos=False, special=False)
    step = window - len(begin)
    total, predicted, code = 0.0, 0, 14695981039346656037
    for first in range(0, len(ids), step):
        part = begin + ids[first:first + step]
        if len(part) < 2:
            break
        llm.reset()
        llm.eval(part)
        for i in range(len(part) - 1):
            logits = llm.scores[i].astype(np.float64)
            top = logits.max()
            total += np.log(np.exp(logits - top).sum()) + top - logits[part[i + 1]]
        predicted += len(part) - 1
        for token in part:
            code = ((code ^ token) * 1099511628211) % (1 << 64)
    nll = total / predicted
    print(json.dumps({"predicted": predicted, "nll": round(nll, 6),
                      "perplexity": round(float(np.exp(nll)), 4), "ids": f"{code:016x}"}))


if __name__ == "__main__":
    main()
