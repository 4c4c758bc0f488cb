#!/usr/bin/env python3
"""hexad against llama-server on the same cores: what chats and agents feel.

    peer_serve.py --peer FOLDER MODEL.gguf...      FOLDER holds llama-server
    peer_serve.py --report                         the table of what was measured before

One server runs at a time, fresh for every sample, after one warm-up request. Pairs alternate in
their order. The peer is run at each of a scenario's settings in the first pair, later only at those
that were its best in some measure; each measure is compared with the peer's best setting for it.
docs/benchmarks-serve.md says what the scenarios are.
"""
import argparse
import asyncio
import json
import os
import pathlib
import shutil
import sys
import time

from peer_serve_report import best_setting, model_name, print_table
from peer_serve_scenarios import SCENARIOS, warm_up
from peer_serve_servers import hexad_server, peer_server


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL.gguf")
    parser.add_argument("--hexad", default="build/release/server/hexad", help="the program")
    parser.add_argument("--peer", help="folder with llama-server")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--quick", action="store_true",
                        help="one pair, the peer at its first setting")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--scenarios", default="abcd", help="some of a b c d")
    parser.add_argument("--agents", type=int, default=32,
                        help="of scenario d; fewer only for a first look")
    parser.add_argument("--side", choices=("both", "hexad", "peer"), default="both")
    parser.add_argument("--setting", action="append",
                        help="flags of the peer instead of the scenario's own")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/bench/serve.json"))
    parser.add_argument("--append", action="store_true", help="keep the samples in --out")
    parser.add_argument("--report", action="store_true", help="print the table of --out and end")
    args = parser.parse_args()
    if args.report:
        return args
    if not args.models:
        parser.error("no model is given")
    if args.side != "hexad" and not (args.peer and shutil.which(f"{args.peer}/llama-server")):
        parser.error(f"--peer {args.peer}: no llama-server is there")
    if args.side != "peer" and not shutil.which(args.hexad):
        parser.error(f"--hexad {args.hexad}: no such program; make build makes it")
    if unknown := set(args.scenarios) - set(SCENARIOS):
        parser.error(f"--scenarios: {', '.join(sorted(unknown))} is none of {' '.join(SCENARIOS)}")
    SCENARIOS["d"].agents = args.agents
    if args.quick:
        args.pairs = 1
    return args


async def measure(args, scenario, model, side, setting, pair):
    folder = args.out.parent / "serve"
    if side == "hexad":
        server = hexad_server(args.hexad, model, args.threads, folder)
    else:
        server = peer_server(args.peer, model, args.threads, setting, folder)
    sample = {"model": model_name(model), "scenario": scenario.name, "side": side,
              "setting": setting, "pair": pair, "at": int(time.time())}
    async with server:
        await warm_up(server)
        server.begin()
        sample["measures"] = await scenario.run(server, f"pair {pair}")
        sample["use"] = server.use()
        sample["requests"] = [answer.record() for answer in server.client.answers]
    measures = "  ".join(f"{name} {value:.4g}" for name, value in sample["measures"].items())
    print(f"{sample['model']} {scenario.name} pair {pair} {side} {setting}: {measures}  "
          f"{sample['use']}", flush=True)
    return sample


def settings_of_pair(args, scenario, samples, pair):
    """Of the peer: all at first, then the winners."""
    every = args.setting or scenario.settings
    if args.quick:
        return every[:1]
    if pair == 0 or args.setting:
        return every
    mine = [s for s in samples if s["side"] == "peer"]
    return sorted({best_setting(mine, m) for m in scenario.measures if m.factor})


def run(args):
    samples = []
    if args.append and args.out.exists():
        samples = json.loads(args.out.read_text())["samples"]
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for model in args.models:
        for scenario in (SCENARIOS[name] for name in args.scenarios):
            mine = []
            for pair in range(args.pairs):
                plan = [("hexad", "")] if args.side != "peer" else []
                if args.side != "hexad":
                    plan += [("peer", s) for s in settings_of_pair(args, scenario, mine, pair)]
                for side, setting in plan if pair % 2 == 0 else reversed(plan):
                    sample = asyncio.run(measure(args, scenario, model, side, setting, pair))
                    mine.append(sample)
                    samples.append(sample)
                    args.out.write_text(json.dumps({"cores": os.cpu_count(),
                                                    "threads": args.threads, "samples": samples}))
    return samples


def main():
    args = arguments()
    samples = json.loads(args.out.read_text())["samples"] if args.report else run(args)
    print_table(samples)


if __name__ == "__main__":
    sys.exit(main())
