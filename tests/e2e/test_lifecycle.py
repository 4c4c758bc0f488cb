"""Start, stop, keys, and what a wrong start says."""
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

import httpx
import openai
import pytest

from daemon import BINARY, CONFIG, MODEL, MODEL_FILE, Daemon, metric

QUESTION = [{"role": "user", "content": "Tell me a story."}]


def run(*args, **kwargs):
    return subprocess.run([BINARY, *args], capture_output=True, text=True, timeout=60, **kwargs)


def test_the_printed_curl_line_works():
    with Daemon() as d:
        done = subprocess.run(d.curl, shell=True, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert '"chat.completion"' in done.stdout, done.stdout
        assert d.stop() == 0, d.log()


def test_health_and_version():
    with Daemon() as d:
        for path in ["/health", "/live", "/ready"]:
            assert httpx.get(d.url + path).status_code == 200
        assert re.fullmatch(r"\d+\.\d+\.\d+\S*", httpx.get(d.url + "/version").json()["version"])


def test_sigterm_lets_streams_finish_then_exits_0():
    with Daemon() as d:
        client = openai.OpenAI(base_url=d.url + "/v1", api_key="none", max_retries=0)
        stream = client.chat.completions.create(
            model=MODEL, messages=QUESTION, stream=True, max_tokens=200,
            extra_body={"ignore_eos": True, "min_tokens": 200})
        next(iter(stream))
        d.process.send_signal(signal.SIGTERM)
        finish = [c.choices[0].finish_reason for c in stream if c.choices][-1]
        assert finish == "length"
        assert d.process.wait(30) == 0, d.log()


def test_sigterm_past_the_deadline_ends_streams_with_an_error():
    with Daemon(drain="100ms") as d:
        client = openai.OpenAI(base_url=d.url + "/v1", api_key="none", max_retries=0)
        stream = client.chat.completions.create(
            model=MODEL, messages=QUESTION, stream=True,
            extra_body={"ignore_eos": True, "min_tokens": 900, "max_tokens": 900})
        next(iter(stream))
        d.process.send_signal(signal.SIGTERM)
        with pytest.raises(openai.APIError, match="shutting down"):
            for _ in stream:
                pass
        assert d.process.wait(30) == 0, d.log()


def test_a_second_sigterm_ends_streams_at_once():
    with Daemon(drain="1h") as d:
        client = openai.OpenAI(base_url=d.url + "/v1", api_key="none", max_retries=0)
        stream = client.chat.completions.create(
            model=MODEL, messages=QUESTION, stream=True,
            extra_body={"ignore_eos": True, "min_tokens": 1900, "max_tokens": 1900})
        next(iter(stream))
        d.process.send_signal(signal.SIGTERM)
        assert wait_for(lambda: "stopping" in d.log()), d.log()
        d.process.send_signal(signal.SIGTERM)
        with pytest.raises(openai.APIError, match="shutting down"):
            for _ in stream:
                pass
        assert d.process.wait(30) == 0, d.log()


@pytest.mark.parametrize("command", [
    "serve", "chat", "bench", "bench engine", "bench kernels", "bench quality", "models",
    "models pull", "models list", "models inspect", "models rm",
    "config", "config print", "config check", "config explain", "config schema", "config probe",
    "keys", "keys new"])
def test_every_command_has_help(command):
    done = run(*command.split(), "--help")
    assert done.returncode == 0, done.stderr
    assert "usage: hexad " + command.split()[0] in done.stdout.lower()
    assert done.stdout.endswith("\n") and not done.stderr


def test_keys():
    made = run("keys", "new", "--tenant", "acme")
    assert made.returncode == 0, made.stderr
    key = re.search(r"hxd_[\w-]+", made.stdout).group(0)
    line = re.search(r"^\s*- \{.*\}\s*$", made.stdout + made.stderr, re.M).group(0)
    with Daemon() as other:
        folder = pathlib.Path(other.folder.name)
        keys = folder / "keys.yaml"
        keys.write_text(line.strip() + "\n")
        keys.chmod(0o600)
        with Daemon(extra=f"auth: {{keys_file: {keys}}}") as d:
            good = openai.OpenAI(base_url=d.url + "/v1", api_key=key, max_retries=0)
            assert good.models.list().data
            bad = openai.OpenAI(base_url=d.url + "/v1", api_key="hxd_wrong", max_retries=0)
            with pytest.raises(openai.AuthenticationError) as wrong:
                bad.chat.completions.create(model=MODEL, messages=QUESTION)
            missing = httpx.post(d.url + "/v1/chat/completions", json={})
            assert missing.status_code == 401
            assert missing.json() == wrong.value.response.json()


@pytest.mark.parametrize("text,says", [
    ("polcy: {}\n", ["hexad.yaml:1:1", "polcy", "policy"]),
    ("policy: {batch: {step_target: soon}}\n", ["step_target", "soon"]),
    ("listen: {http: 0.0.0.0:0}\n", ["listen.http", "auth"]),
    ("models: [{name: m, source: /nowhere/m.gguf}]\nworkers: [{name: w, model: m}]\n",
     ["/nowhere/m.gguf"]),
    ("listen: {http: 127.0.0.1:99999}\n", ["99999"]),
])
def test_a_wrong_configuration_names_field_value_and_remedy(tmp_path, text, says):
    path = tmp_path / "hexad.yaml"
    path.write_text(text)
    done = run("serve", "--config", str(path))
    assert done.returncode != 0
    for word in says:
        assert word in done.stdout + done.stderr


def test_port_in_use_names_the_address():
    with Daemon() as first:
        port = first.url.rsplit(":", 1)[1]
        text = CONFIG.format(model=MODEL, file=MODEL_FILE, host="64MiB", step_target="50ms",
                             max_running=4, level="info", drain="1s", extra="")
        text = text.replace("http: 127.0.0.1:0", f"http: 127.0.0.1:{port}")
        path = pathlib.Path(first.folder.name) / "second.yaml"
        path.write_text(text)
        done = run("serve", "--config", str(path))
        assert done.returncode != 0 and port in done.stdout + done.stderr
        assert httpx.get(first.url + "/health").status_code == 200


def test_a_truncated_model_is_refused(tmp_path):
    path = tmp_path / "half.gguf"
    path.write_bytes(MODEL_FILE.read_bytes()[:100_000])
    config = tmp_path / "hexad.yaml"
    config.write_text(f"models: [{{name: half, source: {path}}}]\n"
                      "workers: [{name: w0, model: half}]\n")
    done = run("serve", "--config", str(config))
    assert done.returncode not in (0, -6, -11)
    assert "half.gguf" in done.stdout + done.stderr


def test_a_thousand_idle_streams_are_cheap_and_free_their_kv_when_they_leave():
    """1,000 waiting SSE clients cost little; 300 of them leaving are noticed without traffic."""
    with Daemon(max_running=2, host="64MiB", extra="") as d:
        before = d.rss_bytes()
        import socket
        host, port = d.url.removeprefix("http://").split(":")
        body = (b'{"model":"%s","stream":true,"max_tokens":900,"min_tokens":900,"ignore_eos":true,'
                b'"messages":[{"role":"user","content":"Tell me a story."}]}' % MODEL.encode())
        request = (b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json"
                   b"\r\ncontent-length: %d\r\n\r\n" % len(body)) + body
        sockets = []
        for _ in range(1000):
            s = socket.create_connection((host, int(port)))
            s.sendall(request)
            sockets.append(s)
        live = threading.Event()

        def count():
            text = httpx.get(d.url + "/metrics", timeout=30).text
            return (metric(text, "vllm:num_requests_running")
                    + metric(text, "vllm:num_requests_waiting"))

        deadline = time.monotonic() + 60
        while count() < 990 and time.monotonic() < deadline:
            live.wait(0.05)
        assert count() >= 990
        grown = d.rss_bytes() - before
        print(f"RSS grew by {grown / 1e6:.1f} MB with 1,000 streams")
        assert grown < 60e6
        total = count()
        for s in sockets[:300]:
            s.close()
        deadline = time.monotonic() + 30
        while count() > total - 295 and time.monotonic() < deadline:
            live.wait(0.02)
        assert count() <= total - 295
        for s in sockets[300:]:
            s.close()
        deadline = time.monotonic() + 30
        while count() > 0 and time.monotonic() < deadline:
            live.wait(0.02)
        text = httpx.get(d.url + "/metrics").text
        assert metric(text, "vllm:num_requests_running") == 0
        assert metric(text, "vllm:kv_cache_usage_perc") == 0
        assert d.stop() == 0, d.log()


def test_idle_memory_is_weights_kv_and_little_else():
    with Daemon(host="64MiB") as d:
        print(f"idle RSS {d.rss_bytes() / 1e6:.1f} MB")
        assert d.rss_bytes() < os.path.getsize(MODEL_FILE) + (64 << 20) + 200e6


def test_sighup_reloads_whole_or_not_at_all():
    with Daemon() as d:
        text = d.config_path.read_text()
        d.config_path.write_text(text.replace("level: info", "level: debug"))
        d.process.send_signal(signal.SIGHUP)
        assert wait_for(lambda: "reloaded" in d.log()), d.log()
        d.config_path.write_text(text + "\nnonsense: 1\n")
        d.process.send_signal(signal.SIGHUP)
        assert wait_for(lambda: "nonsense" in d.log()), d.log()
        assert httpx.get(d.url + "/health").status_code == 200


def test_sighup_keeps_what_the_command_line_overrides():
    with Daemon(args=["--http", "localhost:0", "--model", str(MODEL_FILE)]) as d:
        d.process.send_signal(signal.SIGHUP)
        assert wait_for(lambda: "reload" in d.log()), d.log()
        assert "reloaded" in d.log() and "refused" not in d.log(), d.log()


def wait_for(condition, seconds=20):
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not condition() and time.monotonic() < deadline:
        pause.wait(0.02)
    return condition()
