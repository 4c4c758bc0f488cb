"""What is asked of both servers. Prompts are random token ids by a seed: the same for both.

A scenario names its measures, the settings of the peer worth trying, and runs once on a fresh
server; its result is {measure: value}.
"""
import asyncio
import dataclasses
import random
import time


@dataclasses.dataclass(frozen=True)
class Measure:
    name: str
    unit: str
    factor: float = None  # how many times better than the peer it should be; None: only shown
    larger_is_better: bool = False
    below: float = float("inf")  # what hexad should stay under besides


def tokens(seed, count):
    return random.Random(seed).choices(range(1000, 50000), k=count)


def percentile(values, share):
    """The nearest rank."""
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def milliseconds_of_gaps(answers):
    gaps = [1e3 * gap for answer in answers for gap in answer.gaps()]
    return {"gap_p50_ms": percentile(gaps, 0.5), "gap_p99_ms": percentile(gaps, 0.99),
            "gap_max_ms": max(gaps)}


async def warm_up(server):
    """Weights touched, first steps timed, nothing of it in any prompt that follows."""
    await server.client.complete(tokens("warm up", 256), 16)


class SharedChats:
    """Eight chats with a common prefix arrive together, three times, each when its last ended."""
    name = "a"
    title = "8 chats, 1,000 shared + 64 own tokens, 64 out, three rounds"
    measures = (Measure("ttft_worst_s", "s", 4.5), Measure("wall_s", "s", 4),
                Measure("gap_p50_ms", "ms"), Measure("gap_p99_ms", "ms"),
                Measure("gap_max_ms", "ms"))
    # With one or two slots the prefix is computed once or twice, and everybody waits in line.
    settings = ("-np 1 -c 8192 -fa off", "-np 2 -c 8192 -fa off", "", "-np 8 -c 16384 -fa off",
                "-np 8 -c 16384 -fa off -b 64 -ub 64")
    chats, shared, own, out, rounds = 8, 1000, 64, 64, 3

    async def run(self, server, seed):
        prefix = tokens(f"{seed} prefix", self.shared)

        async def chat(index):
            for turn in range(self.rounds):
                prompt = prefix + tokens(f"{seed} chat {index} {turn}", self.own)
                await server.client.complete(prompt, self.out)

        start = time.perf_counter()
        await asyncio.gather(*(chat(i) for i in range(self.chats)))
        wall = time.perf_counter() - start
        answers = server.client.answers
        return {"ttft_worst_s": max(a.first_token for a in answers), "wall_s": wall,
                **milliseconds_of_gaps(answers)}


class Newcomer:
    """One chat decodes while a long prompt arrives."""
    name = "b"
    title = "one chat decodes while a 1,500-token prompt arrives"
    measures = (Measure("gap_max_ms", "ms", 4, below=200), Measure("newcomer_ttft_s", "s", 1))
    settings = ("", "-np 2 -c 8192 -fa off", "-np 2 -c 8192 -b 64 -ub 64",
                "-np 2 -c 8192 -fa off -b 64 -ub 64")
    before, prompt, out = 32, 1500, 32

    async def run(self, server, seed):
        settled = asyncio.Event()

        def on_text(answer):
            if len(answer.texts) == self.before:
                settled.set()
            running.append(answer)

        running = []
        decoder = asyncio.create_task(
            server.client.complete(tokens(f"{seed} decoder", 64), 2000, on_text=on_text))
        await settled.wait()
        newcomer = await server.client.complete(tokens(f"{seed} newcomer", self.prompt), self.out)
        if decoder.done():
            decoder.result()
            raise RuntimeError("the decoding chat ended before the newcomer")
        decoder.cancel()
        await asyncio.gather(decoder, return_exceptions=True)
        decoding = running[0]
        first = newcomer.sent + newcomer.first_token
        meanwhile = decoding.gaps(newcomer.sent, first)
        return {"gap_max_ms": 1e3 * max(meanwhile), "newcomer_ttft_s": newcomer.first_token,
                "gap_alone_ms": 1e3 * percentile(decoding.gaps(until=newcomer.sent), 0.5),
                "gap_meanwhile_p50_ms": 1e3 * percentile(meanwhile, 0.5)}


class SharedDecode:
    """Eight streams on one long prefix, which is in memory before: decode alone is measured."""
    name = "c"
    title = "8 streams decode on a 2,000-token shared prefix"
    measures = (Measure("decode_tokens_per_s", "1/s", 2, larger_is_better=True),)
    settings = ("-np 8 -c 20480 -fa off", "-np 8 -c 20480",
                "-np 8 -c 20480 -kvu --no-cache-idle-slots",
                "-np 8 -c 20480 -kvu -fa off --no-cache-idle-slots")
    streams, shared, own, out = 8, 2000, 16, 96

    async def run(self, server, seed):
        client = server.client
        prefix = tokens(f"{seed} prefix", self.shared)
        await client.complete(prefix, 1, slot=0)
        if client.dialect.path == "/completion":
            # The peer would compute the prefix once for every slot; a saved one can be read back.
            await self._slot(client, 0, "save")
            for slot in range(1, self.streams):
                await self._slot(client, slot, "restore")
        server.begin()
        prompts = [prefix + tokens(f"{seed} stream {i}", self.own) for i in range(self.streams)]
        answers = await asyncio.gather(
            *(client.complete(prompt, self.out, slot=i) for i, prompt in enumerate(prompts)))
        # While all of them decode. Text may come later than its token, so texts are scaled.
        start = max(a.texts[0] for a in answers)
        end = min(a.texts[-1] for a in answers)
        count = sum(self.out * sum(start < t <= end for t in a.texts) / len(a.texts)
                    for a in answers)
        return {"decode_tokens_per_s": count / (end - start), **milliseconds_of_gaps(answers),
                "prompt_tokens_computed": sum(a.prompt_tokens - a.cached_tokens for a in answers)}

    @staticmethod
    async def _slot(client, slot, action):
        status, answer = await client.call(f"/slots/{slot}?action={action}",
                                           {"filename": "prefix.bin"})
        if status != 200:
            raise RuntimeError(f"slot {slot} {action}: {answer}")


class Agents:
    """Agents with one system prompt, whose turns add the answer and the result of a tool."""
    name = "d"
    title = "32 agents, 2,000 shared + 200 own tokens, three turns of 32 out with tool gaps"
    measures = (Measure("workflow_p95_s", "s", 4), Measure("workflow_p50_s", "s"))
    settings = ("", "-np 1 -c 8192 -fa off", "-np 4 -c 16384 -fa off", "-np 8 -c 20480 -fa off",
                "-np 32 -c 81920 -fa off")
    agents, shared, own, out, turns, result = 32, 2000, 200, 32, 3, 50
    arrivals_s, gap_s = 8.0, (0.5, 2.0)

    async def run(self, server, seed):
        prefix = tokens(f"{seed} prefix", self.shared)
        dice = random.Random(f"{seed} times")
        times = [(dice.uniform(0, self.arrivals_s),
                  [dice.uniform(*self.gap_s) for _ in range(self.turns - 1)])
                 for _ in range(self.agents)]

        async def agent(index):
            arrival, gaps = times[index]
            await asyncio.sleep(arrival)
            start = time.perf_counter()
            prompt = prefix + tokens(f"{seed} agent {index}", self.own)
            for turn in range(self.turns):
                answer = await server.client.complete(prompt, self.out, whole=True)
                if len(answer.token_ids) != self.out:
                    raise RuntimeError(f"{len(answer.token_ids)} token ids of {self.out}")
                if turn < len(gaps):
                    await asyncio.sleep(gaps[turn])
                    prompt = (prompt + answer.token_ids +
                              tokens(f"{seed} result {index} {turn}", self.result))
            return time.perf_counter() - start

        workflows = await asyncio.gather(*(agent(i) for i in range(self.agents)))
        answers = server.client.answers
        return {"workflow_p95_s": percentile(workflows, 0.95),
                "workflow_p50_s": percentile(workflows, 0.5), "workflow_max_s": max(workflows),
                "prompt_tokens_computed": sum(a.prompt_tokens - a.cached_tokens for a in answers)}


SCENARIOS = {s.name: s for s in (SharedChats(), Newcomer(), SharedDecode(), Agents())}
