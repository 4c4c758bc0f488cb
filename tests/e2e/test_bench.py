"""`hexad bench` without a server: every measurement once, on the built-in model."""
import json
import subprocess

import pytest

from daemon import BINARY, MODEL_FILE, ROOT


def bench(*args, **options):
    done = subprocess.run([BINARY, "bench", *args], text=True, capture_output=True, timeout=120,
                          **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("what", ["engine", "kernels", "quality"])
def test_help(what):
    assert f"hexad bench {what}" in bench(what, "--help")


def test_engine():
    text = bench("engine", str(MODEL_FILE), "prefill:tokens=64", "decode:tokens=8:batch=2:depth=16",
                 "--threads", "2", "--repeats", "2")
    assert "prefill:tokens=64:depth=0" in text
    assert "decode:tokens=8:depth=16:batch=2:prompt=shared" in text


def test_engine_takes_commands():
    text = bench("engine", str(MODEL_FILE), "--interactive", "--threads", "2",
                 input="prepare decode:tokens=4\nrun\n")
    ready, prepared, sample = map(json.loads, text.splitlines())
    assert ready["ready"] and prepared["work"]["bytes"] > 0
    assert sample["tokens_per_second"] > 0


def test_kernels(tmp_path):
    path = tmp_path / "kernels.json"
    bench("kernels", "--model", "smollm2-135m", "--op", "ffn-down,attention-decode,norm",
          "--format", "Q4_0", "--tokens", "1", "--milliseconds", "5", "--threads", "2",
          "--json", str(path))
    result = json.loads(path.read_text())
    assert result["limits"]["read_bytes_per_second"] > 1e9
    assert {r["op"] for r in result["results"]} == {"ffn-down", "attention-decode", "norm"}


def test_quality():
    text = bench("quality", str(MODEL_FILE), str(ROOT / "tests/golden/perplexity.txt"),
                 "--tokens", "100", "--json", "-")
    lines = [json.loads(line) for line in text.splitlines()]
    assert len(lines) == 4 and len({line["ids"] for line in lines}) == 1
    assert all(abs(line["difference"]) < 0.05 for line in lines)
