"""The two engines of peer_cpu.py, each a process that waits between samples and takes no CPU then.

hexad waits for a line on its input. The peer's programs cannot wait: they run the same test many
times over and are stopped (SIGSTOP) whenever they have printed a result, while they are in a part
that they do not time: llama-bench in its --delay, llama-batched-bench in its prompt.
"""
import json
import os
import pathlib
import signal
import subprocess
import time

TICKS = os.sysconf("SC_CLK_TCK")
CPUS = os.cpu_count()


def process_ticks(pid):
    """CPU time of a process and all its threads, in clock ticks."""
    text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    fields = text[text.rindex(")") + 2:].split()
    return int(fields[11]) + int(fields[12])


def machine_ticks():
    """Ticks that any process (or, in a virtual machine, a neighbour) had, since the start."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields)
    return user + nice + system + irq + softirq + steal


class Meter:
    """The share of the machine's CPU time that others took while a process worked."""

    def __init__(self, pid):
        self.pids = (pid, os.getpid())
        self.start = time.monotonic()
        self.machine = machine_ticks()
        self.own = sum(map(process_ticks, self.pids))

    def others(self):
        seconds = time.monotonic() - self.start
        own = sum(map(process_ticks, self.pids)) - self.own
        taken = machine_ticks() - self.machine - own
        return max(0.0, taken / (seconds * TICKS * CPUS))


class Hexad:
    """`hexad bench engine --interactive` on one model: loaded once, for all tests."""

    def __init__(self, program, model, threads, flags):
        command = [program, "bench", "engine", str(model), "--interactive",
                   "--threads", str(threads), *flags]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.ask(None)

    def ask(self, line):
        if line is not None:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        text = self.process.stdout.readline()
        if not text:
            raise RuntimeError("hexad bench engine ended")
        answer = json.loads(text)
        if "error" in answer:
            raise RuntimeError("hexad: " + answer["error"])
        return answer

    def prepare(self, test):
        """Its physical work, and what the kernels are called. One repetition warms up."""
        answer = self.ask("prepare " + test.hexad)
        self.ask("run")
        return answer["work"], answer["numerics"]

    def sample(self):
        """Tokens a second, and the share of the machine that others took."""
        meter = Meter(self.process.pid)
        answer = self.ask("run")
        return answer["tokens_per_second"], meter.others()

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


class Peer:
    """One of llama.cpp's programs on one test with one choice of flags."""

    def __init__(self, folder, model, threads, test, flags, samples):
        self.field = test.peer_field
        command = [str(pathlib.Path(folder) / test.peer_program), "-m", str(model),
                   "-t", str(threads), *test.peer_arguments(samples + 1), *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True)
        self.delays = test.peer_program == "llama-bench"
        try:
            self._next()  # loads, computes the depth, warms up; not a sample
        except BaseException:
            self.close()
            raise
        self._park()

    def _next(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                return float(json.loads(line)[self.field])
        raise RuntimeError(f"{self.process.args[0]} ended: exit code {self.process.wait()}")

    def _park(self):
        # Into the delay, which goes on counting while the process is stopped.
        if self.delays:
            for _ in range(40):
                before = process_ticks(self.process.pid)
                time.sleep(0.02)
                if process_ticks(self.process.pid) == before:
                    break
        os.kill(self.process.pid, signal.SIGSTOP)

    def sample(self):
        meter = Meter(self.process.pid)
        os.kill(self.process.pid, signal.SIGCONT)
        rate = self._next()
        others = meter.others()
        self._park()
        return rate, others

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
