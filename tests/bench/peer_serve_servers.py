"""The two servers: how they are started, found ready, watched and stopped."""
import asyncio
import os
import pathlib
import signal
import socket
import subprocess
import time

from peer_serve_client import Client, HexadDialect, PeerDialect

TICKS = os.sysconf("SC_CLK_TCK")

HEXAD_CONFIG = """
listen: {{http: 127.0.0.1:{port}, grpc: off}}
models: [{{name: m, source: {model}}}]
workers: [{{name: w0, model: m, device: {{kind: cpu, threads: {threads}, activations: int8}}}}]
log: {{level: warn}}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def process_seconds(pid):
    """CPU seconds of a process so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def machine_seconds():
    """(busy, stolen by the host) CPU seconds of the whole machine so far."""
    line = pathlib.Path("/proc/stat").read_text().splitlines()[0]
    fields = [int(x) / TICKS for x in line.split()[1:]]
    return sum(fields[:3]) + sum(fields[5:7]), fields[7]


class Server:
    """`async with Server(...) as s:` s.client, and s.use() at the end of a measurement."""

    def __init__(self, command, port, dialect, log):
        self.command = command
        self.client = Client(port, dialect)
        self.log = pathlib.Path(log)
        self.started = None

    async def __aenter__(self):
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=subprocess.STDOUT,
                                            stdin=subprocess.DEVNULL)
        try:
            await self._ready()
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        return self

    async def _ready(self):
        for _ in range(1200):
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.command[0]} ended at its start: {self.log}")
            try:
                if (await self.client.call("/health"))[0] == 200:
                    return
            except (OSError, ValueError, IndexError, asyncio.IncompleteReadError):
                pass
            await asyncio.sleep(0.05)
        raise RuntimeError(f"{self.command[0]} is not ready after a minute: {self.log}")

    def begin(self):
        """The start of what is measured."""
        self.client.answers.clear()
        self.started = self._counters()

    def _counters(self):
        return (time.perf_counter(), process_seconds(self.process.pid), time.process_time(),
                *machine_seconds())

    def use(self):
        """Since begin(): seconds, and whose share of the machine's CPU time was how large."""
        wall, server, client, busy, stolen = (
            b - a for a, b in zip(self.started, self._counters()))
        total = wall * os.cpu_count()
        return {"seconds": round(wall, 3), "server": round(server / total, 3),
                "client": round(client / total, 4), "stolen": round(stolen / total, 4),
                "others": round(max(0.0, busy - server - client) / total, 4)}

    async def __aexit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def hexad_server(binary, model, threads, folder):
    port = free_port()
    config = pathlib.Path(folder) / "hexad.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(HEXAD_CONFIG.format(port=port, model=pathlib.Path(model).resolve(),
                                          threads=threads))
    return Server([str(binary), "serve", "--config", str(config)], port, HexadDialect,
                  pathlib.Path(folder) / "hexad.log")


def peer_server(programs, model, threads, flags, folder):
    """flags: of llama-server, as one string."""
    port = free_port()
    command = [str(pathlib.Path(programs) / "llama-server"), "-m", str(model), "-t", str(threads),
               "--host", "127.0.0.1", "--port", str(port), "--offline",
               "--slot-save-path", str(folder) + "/", *flags.split()]
    return Server(command, port, PeerDialect, pathlib.Path(folder) / "peer.log")
