#!/usr/bin/env python3
"""hexad's CPU engine against llama.cpp's on the same cores: tokens a second of prefill and decode.

    peer_cpu.py --peer FOLDER                      FOLDER holds llama-bench and its kin
    peer_cpu.py --peer FOLDER --models qwen05b --quants q4_0 --tests decode,batch8 --pairs 2
    peer_cpu.py --report                           the table of what was measured before

Samples alternate in pairs, hexad first in every other one; both engines stay loaded and sleep while
the other works. The peer runs at the flags that are best for the test, chosen by a sample of each
at the first quantisation of a model. A sample during which other processes took more than 5 % of
the CPUs is taken again, up to three times, and marked if that did not help.

Models are MODEL-QUANT.gguf in --folder. With --make those that are missing are made there: random
weights of the shape, quantised by the peer's own program. docs/benchmarks.md has more.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys

import peer_cpu_report as report
import random_gguf
from peer_cpu_programs import Hexad, Peer
from peer_cpu_tests import TESTS

MODELS, QUANTS = ("qwen05b", "llama1b"), ("q4_0", "q8_0", "q4_k_m", "f16")
RETRIES = 3


def chosen(text, known, parser, what):
    names = text.split(",")
    if unknown := [n for n in names if n not in known]:
        parser.error(f"--{what}: {unknown[0]} is none of {', '.join(known)}")
    return names


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hexad", default="build/release/server/hexad", help="the program")
    parser.add_argument("--hexad-flags", default="", help="of hexad bench engine")
    parser.add_argument("--peer", help="folder with llama-bench, llama-batched-bench")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("build/bench/models"))
    parser.add_argument("--make", action="store_true", help="make models that are missing")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--quants", default=",".join(QUANTS))
    parser.add_argument("--tests", default="decode,prefill,batch8,batch32,depth,odd",
                        help="some of " + ",".join(TESTS))
    parser.add_argument("--odd-quants", default="q4_0", help="of the test odd: batches 2 to 7")
    parser.add_argument("--every-setting", action="store_true",
                        help="choose the peer's flags anew for each quantisation")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/bench/cpu.json"))
    parser.add_argument("--append", action="store_true", help="keep the other cells in --out")
    parser.add_argument("--report", action="store_true", help="print the table of --out and end")
    args = parser.parse_args()
    if args.report:
        return args
    args.models = chosen(args.models, random_gguf.SHAPES, parser, "models")
    args.quants = chosen(args.quants, QUANTS, parser, "quants")
    args.tests = chosen(args.tests, TESTS, parser, "tests")
    if not (args.peer and shutil.which(f"{args.peer}/llama-bench")):
        parser.error(f"--peer {args.peer}: no llama-bench is there")
    if not shutil.which(args.hexad):
        parser.error(f"--hexad {args.hexad}: no such program; make build makes it")
    if args.pairs < 1:
        parser.error("--pairs is 1 or more")
    return args


def model_file(args, model, quant):
    path = args.folder / f"{model}-{quant}.gguf"
    if path.exists():
        return path
    if not args.make:
        sys.exit(f"{path} is missing: --make makes it")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    print(f"making {path}", file=sys.stderr)
    if quant == "f16":
        random_gguf.write(model, partial)
    else:
        source = model_file(args, model, "f16")
        subprocess.run([f"{args.peer}/llama-quantize", source, partial, quant.upper(),
                        str(args.threads)], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    partial.rename(path)
    return path


def calm_sample(engine):
    """The least disturbed of a few attempts, the first that is calm."""
    best = None
    for _ in range(1 + RETRIES):
        rate, others = engine.sample()
        if best is None or others < best["others"]:
            best = {"rate": rate, "others": round(others, 4)}
        if others <= report.MOST_OTHERS:
            break
    return best


class Cells:
    def __init__(self, args):
        self.args = args
        self.settings = {}  # of the peer, by model and test

    def measure(self, hexad, path, model, quant, test):
        """{model, quant, test, tokens, work, numerics, flags, hexad: [sample], peer: [sample]}"""
        args = self.args
        work, numerics = hexad.prepare(test)
        known = None if args.every_setting else self.settings.get((model, test.name))
        peers, first = {}, {}
        try:
            for setting in [known] if known is not None else test.settings:
                most = args.pairs * (1 + RETRIES) + RETRIES
                peers[setting] = Peer(args.peer, path, args.threads, test, setting, most)
                if len(test.settings) > 1 and known is None:
                    first[setting] = calm_sample(peers[setting])
                    if first[setting]["rate"] < max(s["rate"] for s in first.values()):
                        peers.pop(setting).close()
            best = max(first, key=lambda s: first[s]["rate"]) if first else next(iter(peers))
            self.settings[model, test.name] = best
            for setting in [s for s in peers if s != best]:
                peers.pop(setting).close()
            samples = {"hexad": [], "peer": []}
            for pair in range(args.pairs):
                order = [("hexad", hexad), ("peer", peers[best])]
                for side, engine in order if pair % 2 == 0 else reversed(order):
                    samples[side].append(calm_sample(engine))
        finally:
            for peer in peers.values():
                peer.close()
        tried = {" ".join(s): value for s, value in first.items()}
        return {"model": model, "quant": quant, "test": test.name, "tokens": test.tokens,
                "work": work, "numerics": numerics, "flags": list(best), "tried": tried, **samples}


def measure_limits(args):
    done = subprocess.run([args.hexad, "bench", "kernels", "--limits-only", "--json", "-",
                           "--threads", str(args.threads)], check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(done.stdout)["limits"]


def key(cell):
    return cell["model"], cell["quant"], cell["test"]


def save(args, result):
    args.out.parent.mkdir(parents=True, exist_ok=True)
    result["rows"] = [report.summarise(c, result["limits"]) for c in result["cells"]]
    partial = args.out.with_suffix(".partial")
    partial.write_text(json.dumps(result, indent=1) + "\n")
    partial.rename(args.out)


def run(args):
    result = {"limits": measure_limits(args), "pairs": args.pairs, "threads": args.threads,
              "cells": []}
    if args.append and args.out.exists():
        result["cells"] = json.loads(args.out.read_text())["cells"]
    cells = Cells(args)
    for model in args.models:
        for quant in args.quants:
            path = model_file(args, model, quant)
            hexad = Hexad(args.hexad, path, args.threads, args.hexad_flags.split())
            for test in [t for name in args.tests for t in TESTS[name]
                         if name != "odd" or quant in args.odd_quants.split(",")]:
                cell = cells.measure(hexad, path, model, quant, test)
                result["cells"] = [c for c in result["cells"] if key(c) != key(cell)] + [cell]
                row = report.summarise(cell, result["limits"])
                print(f"{model} {quant} {test.name}: {row['hexad']:.1f} against {row['peer']:.1f},"
                      f" ratio {row['ratio']:.2f}, {row['share']:.0%} of the limit",
                      file=sys.stderr)
                save(args, result)
            hexad.close()
    return result


def main():
    args = arguments()
    result = json.loads(args.out.read_text()) if args.report else run(args)
    rows = [report.summarise(c, result["limits"]) for c in result["cells"]]
    print(report.table(rows, result["limits"]))


if __name__ == "__main__":
    main()
