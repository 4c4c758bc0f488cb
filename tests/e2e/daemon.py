"""Starts the real binary on free ports and stops it again."""
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("HEXAD_BINARY", str(ROOT / "build/release/server/hexad"))
MODEL = "hexad-tiny"
MODEL_FILE = ROOT / "configs/models/hexad-tiny.gguf"

CONFIG = """
listen: {{http: 127.0.0.1:0, grpc: 127.0.0.1:0}}
models: [{{name: {model}, source: {file}}}]
workers: [{{name: w0, model: {model}, device: {{kind: cpu, threads: 2}}}}]
kvcache: {{host: {host}}}
policy: {{batch: {{step_target: {step_target}, max_running: {max_running}}}}}
limits: {{max_body: 1MiB, max_connections: 2048}}
log: {{level: {level}}}
shutdown: {{drain_deadline: {drain}}}
{extra}
"""


class Daemon:
    """`with Daemon() as d:` — d.url, d.grpc, d.pid, d.log()."""

    def __init__(self, *, host="256MiB", step_target="50ms", max_running=64, drain="5s",
                 level="info", extra="", config=None, args=()):
        self.folder = tempfile.TemporaryDirectory(prefix="hexad-e2e-")
        path = pathlib.Path(self.folder.name) / "hexad.yaml"
        path.write_text(config if config is not None else CONFIG.format(
            model=MODEL, file=MODEL_FILE, host=host, step_target=step_target,
            max_running=max_running, drain=drain, level=level, extra=extra))
        self.config_path = path
        self.lines = []
        self.ready = threading.Event()
        self.process = subprocess.Popen([BINARY, "serve", "--config", str(path), *args],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, bufsize=1)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line)
            if match := re.search(r"hexad is ready at (http://\S+)", line):
                self.url = match.group(1)
            if match := re.search(r"gRPC at (\S+)", line):
                self.grpc = match.group(1)
            if "curl" in line:
                self.curl = line.strip()
                self.ready.set()
        self.ready.set()

    def __enter__(self):
        assert self.ready.wait(60), "not ready within a minute:\n" + self.log()
        assert self.process.poll() is None, "exited at start:\n" + self.log()
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        return "".join(self.lines)

    def stop(self, sig=signal.SIGTERM, timeout=60):
        """The exit status."""
        if self.process.poll() is None:
            self.process.send_signal(sig)
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError("did not stop:\n" + self.log()) from None
        self.reader.join(5)
        self.folder.cleanup()
        return code

    def rss_bytes(self):
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024


def metric(text, name, **labels):
    """The sum of a family's samples whose labels match."""
    total = 0.0
    for line in text.splitlines():
        match = re.match(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)", line)
        if match and match.group(1) == name:
            have = dict(re.findall(r'(\w+)="([^"]*)"', match.group(2) or ""))
            if all(have.get(k) == v for k, v in labels.items()):
                total += float(match.group(3))
    return total
