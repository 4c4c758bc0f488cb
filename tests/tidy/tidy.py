#!/usr/bin/env python3
"""Rules of the house that a compiler does not check; run by ctest and by `make lint`.

Layering by library, purity of the decision code, file sizes, include style. Prints each breach as
file:line: message and fails when there is one.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Folder -> folders it may include from, its own included. The first match of the longest prefix
# counts. `server` and `tests` see all.
MAY_SEE = {
    "kvcache/core": ["kvcache/core"],
    "scheduler/step": ["kvcache/core", "scheduler/step"],
    "scheduler/cost": ["kvcache/core", "scheduler/step", "scheduler/cost"],
    "scheduler/batch": ["kvcache/core", "scheduler/step", "scheduler/cost", "scheduler/batch"],
    "scheduler/planner": ["kvcache/core", "scheduler/step", "scheduler/cost", "scheduler/workflow",
                          "scheduler/predict", "scheduler/planner"],
    "engine": ["engine", "scheduler/step", "scheduler/cost", "kvcache", "kernels"],
    "kernels": ["kernels"],
}
PURE = ["kvcache/core", "scheduler"]
IMPURE_HEADERS = re.compile(
    r"^(chrono|thread|mutex|shared_mutex|condition_variable|future|stop_token|semaphore|latch|barrier"
    r"|random|iostream|fstream|ostream|istream|filesystem|cstdio|cstdlib|ctime|csignal|stdio\.h"
    r"|stdlib\.h|time\.h|unistd\.h|fcntl\.h|pthread\.h|sys/.*|absl/time/clock\.h"
    r"|absl/synchronization/.*|absl/random/.*|absl/flags/.*)$")
# The one place that prints and aborts.
IMPURE_ALLOWED = {"kvcache/core/check.cc": {"cstdio", "cstdlib"}}
IMPURE_CALLS = re.compile(r"\b(getenv|absl::Now|std::rand|srand|gettimeofday|clock_gettime)\s*\(")

MAX_LINES = {".cc": 500, ".cu": 500, ".cuh": 500, ".h": 300, ".py": 500}
MAX_HEAVY_UNITS = 6  # translation units that include Boost.Beast or gRPC
HEAVY = re.compile(r'#include\s+[<"](boost/(asio|beast)|grpcpp/|.*\.grpc\.pb\.h)')
# A path of the machine that something was written on means nothing elsewhere.
LOCAL_PATH = re.compile(r"(?<![\w.])/(?:" + "|".join(["wo" + "rk", "ro" + "ot", "ho" + r"me/\w+"]) + r")/[\w.]")

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')


def tracked():
    out = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True)
    if out.returncode == 0 and out.stdout:
        return [p for p in out.stdout.splitlines() if (ROOT / p).is_file()]
    return [str(p.relative_to(ROOT)) for p in ROOT.rglob("*")
            if p.is_file() and not p.relative_to(ROOT).parts[0].startswith((".git", "build"))]


def allowed_from(path):
    best = None
    for folder in MAY_SEE:
        if path.startswith(folder + "/") and (best is None or len(folder) > len(best)):
            best = folder
    return MAY_SEE[best] if best else None


def first_folder(include):
    parts = include.split("/")
    return parts[0] if len(parts) > 1 else None


def check_source(path, lines):
    allowed = allowed_from(path)
    pure = any(path.startswith(folder + "/") for folder in PURE)
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if match:
            include = match.group(1) or match.group(2)
            project = first_folder(include) in ("kvcache", "scheduler", "engine", "kernels",
                                                "server", "proto")
            if project and match.group(2):
                yield number, f"{include}: our own headers are included with quotes"
            if match.group(1) and not project and path.split("/")[0] != "tests" \
                    and not include.startswith(("absl/", "hexad/", "prometheus/")):
                yield number, f"{include}: include from the root of the project"
            if project and allowed is not None \
                    and not any(include.startswith(folder + "/") for folder in allowed):
                yield number, f"{path.rsplit('/', 1)[0]} must not see {include}"
            if pure and IMPURE_HEADERS.match(include) \
                    and include not in IMPURE_ALLOWED.get(path, set()):
                yield number, f"{include}: decision code has no clock, thread, randomness or I/O"
        elif pure and path not in IMPURE_ALLOWED and IMPURE_CALLS.search(line):
            yield number, "decision code gets time, chance and environment as arguments"
    if path.endswith((".h", ".cuh")) and not any(l.startswith("#pragma once") for l in lines[:3]):
        yield 1, "a header starts with #pragma once"


def main():
    breaches = []
    heavy = []
    for path in tracked():
        suffix = pathlib.Path(path).suffix
        if suffix not in MAX_LINES and suffix not in (".md", ".yaml", ".cmake", ".sh", ".txt", ""):
            continue
        try:
            text = (ROOT / path).read_text(encoding="utf-8")
        except (UnicodeDecodeError, OSError):
            continue
        lines = text.splitlines()
        limit = MAX_LINES.get(suffix)
        if limit and len(lines) > limit and not path.startswith("tests/golden/"):
            breaches.append((path, len(lines), f"{len(lines)} lines, at most {limit}: one idea a file"))
        if not path.startswith("tests/golden/"):
            for number, line in enumerate(lines, 1):
                if LOCAL_PATH.search(line):
                    breaches.append((path, number, "a path of one machine"))
        if suffix in (".cc", ".h", ".cu", ".cuh"):
            breaches += [(path, n, m) for n, m in check_source(path, lines)]
            if not path.startswith("tests/") and any(HEAVY.match(line) for line in lines):
                heavy.append(path)
    units = [p for p in heavy if p.endswith(".cc")]
    if len(units) > MAX_HEAVY_UNITS:
        breaches.append((units[-1], 1, f"{len(units)} translation units include Beast or gRPC, at "
                         f"most {MAX_HEAVY_UNITS}: {', '.join(units)}"))
    for path, number, message in breaches:
        print(f"{path}:{number}: {message}")
    print(f"tidy: {len(breaches)} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
