#!/usr/bin/env python3
"""Prefill and decode tokens a second under llama.cpp, to run by turns with engine_speed.

    python3 tests/tools/speed_peer.py MODEL.gguf [THREADS [PROMPT [NEW]]]

The same prompt ids, F16 KV, greedy choice included, low-level calls only. Needs llama-cpp-python
and numpy.
"""

import statistics
import sys
import time

import llama_cpp
import numpy as np


def main():
    model = sys.argv[1]
    threads, prompt, fresh = [int(a) for a in sys.argv[2:]] + [2, 512, 64][len(sys.argv) - 2:]
    llm = llama_cpp.Llama(model, n_ctx=prompt + fresh + 32, n_batch=512, n_threads=threads,
                          n_threads_batch=threads, verbose=False)
    context, size = llm.ctx, llm.n_vocab()

    def decode(ids):
        array = (llama_cpp.llama_token * len(ids))(*ids)
        assert llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(array, len(ids))) == 0
        logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context, -1), (size,))
        return int(logits.argmax())

    rates = {"prefill": [], "decode": []}
    for _ in range(4):
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)
        start = time.perf_counter()
        ids = [i * 37 % 1000 for i in range(prompt)]
        for first in range(0, prompt, 512):
            token = decode(ids[first:first + 512])
        rates["prefill"].append(prompt / (time.perf_counter() - start))
        start = time.perf_counter()
        for _ in range(fresh):
            token = decode([token])
        rates["decode"].append(fresh / (time.perf_counter() - start))
    for name, values in rates.items():
        print(f"{name} tokens/s: wall best {max(values):.1f}, median {statistics.median(values):.1f}")


if __name__ == "__main__":
    main()
