"""A light streaming client for both servers' completion endpoints, over raw sockets.

One connection a request. Times are of time.perf_counter, taken when an event has arrived. What a
server says of its token counts is compared with what was asked: a wrong count is an error.
"""
import asyncio
import dataclasses
import json
import time


@dataclasses.dataclass
class Answer:
    """One request as its client saw it."""
    prompt_tokens: int  # asked for; the server's own count is checked against it
    max_tokens: int
    sent: float = 0.0
    texts: list = dataclasses.field(default_factory=list)  # when text arrived
    end: float = 0.0
    token_ids: list = dataclasses.field(default_factory=list)  # of answers taken whole
    cached_tokens: int = 0
    usage: tuple = ()  # (prompt, output) by the server

    @property
    def first_token(self):
        """Seconds until the first text."""
        return self.texts[0] - self.sent

    def gaps(self, since=float("-inf"), until=float("inf")):
        """Seconds between texts, of the gaps that touch [since, until]."""
        return [b - a for a, b in zip(self.texts, self.texts[1:]) if b >= since and a <= until]

    def check(self):
        if self.usage != (self.prompt_tokens, self.max_tokens):
            raise RuntimeError(f"asked for {self.prompt_tokens} prompt tokens and "
                               f"{self.max_tokens} new ones, the server counted {self.usage}")

    def record(self):
        """For the file of raw samples; seconds from the sending."""
        return {"prompt_tokens": self.prompt_tokens, "output_tokens": self.max_tokens,
                "cached_tokens": self.cached_tokens, "end": round(self.end - self.sent, 5),
                "texts": [round(t - self.sent, 5) for t in self.texts]}


class HexadDialect:
    """/v1/completions."""
    path = "/v1/completions"

    @staticmethod
    def body(prompt, max_tokens, whole, slot):
        del slot  # hexad finds its prefixes itself
        return {"model": "m", "prompt": prompt, "max_tokens": max_tokens, "ignore_eos": True,
                "temperature": 0, "return_token_ids": whole,
                **({} if whole else {"stream": True, "stream_options": {"include_usage": True}})}

    @staticmethod
    def read(event, answer):
        """True: the event has text."""
        if usage := event.get("usage"):
            answer.usage = (usage["prompt_tokens"], usage["completion_tokens"])
            answer.cached_tokens = usage["prompt_tokens_details"]["cached_tokens"]
        choices = event["choices"]
        if not choices:
            return False
        answer.token_ids += choices[0].get("token_ids", ())
        return bool(choices[0]["text"])


class PeerDialect:
    """llama-server's /completion. top_k 1 is its cheapest greedy sampler.

    Random weights would write malformed UTF-8, over which it fails: a bias makes it choose one
    ASCII token, at no cost, since ignore_eos is a bias too. hexad chooses freely; its text may come
    a token late.
    """
    path = "/completion"
    token = 262

    @staticmethod
    def body(prompt, max_tokens, whole, slot):
        return {"prompt": prompt, "n_predict": max_tokens, "ignore_eos": True, "temperature": 0,
                "top_k": 1, "logit_bias": [[PeerDialect.token, 1e4]], "cache_prompt": True,
                "stream": not whole, "return_tokens": whole,
                **({} if slot is None else {"id_slot": slot})}

    @staticmethod
    def read(event, answer):
        if event["stop"]:
            timings = event["timings"]
            cached = timings["cache_n"]
            answer.usage = (timings["prompt_n"] + cached, event["tokens_predicted"])
            answer.cached_tokens = cached
            answer.token_ids += event["tokens"]
        return bool(event["content"])


def request_bytes(path, body):
    data = json.dumps(body).encode() if body is not None else b""
    verb = "GET" if body is None else "POST"
    return (f"{verb} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n").encode() + data


async def read_head(reader):
    status = int((await reader.readline()).split()[1])
    headers = {}
    while line := (await reader.readline()).strip():
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip().lower()
    return status, headers


async def read_pieces(reader, headers):
    """The body as it comes."""
    if headers.get("transfer-encoding") != "chunked":
        length = headers.get("content-length")
        yield await (reader.readexactly(int(length)) if length else reader.read())
        return
    while size := int((await reader.readline()).split(b";")[0], 16):
        piece = await reader.readexactly(size + 2)
        yield piece[:-2]


async def read_events(reader, headers):
    """(arrival, object) of a stream's data lines; of a body that is no stream, one."""
    streams = headers.get("content-type", "").startswith("text/event-stream")
    rest = b""
    async for piece in read_pieces(reader, headers):
        now = time.perf_counter()
        rest += piece
        while streams and (end := rest.find(b"\n\n")) >= 0:
            line, rest = rest[:end], rest[end + 2:]
            if line.startswith(b"data: {"):
                yield now, json.loads(line[6:])
            elif line.startswith(b"error"):
                raise RuntimeError(line.decode())
    if not streams:
        yield now, json.loads(rest)


class Client:
    """Requests to one server."""

    def __init__(self, port, dialect):
        self.port = port
        self.dialect = dialect
        self.answers = []  # all that have ended by themselves

    async def complete(self, prompt, max_tokens, *, whole=False, slot=None, on_text=None):
        """Sends a prompt of token ids and reads the answer to its end. `on_text(answer)` is called
        at every text. A cancelled call closes its connection, which ends the request."""
        answer = Answer(len(prompt), max_tokens)
        data = request_bytes(self.dialect.path,
                             self.dialect.body(prompt, max_tokens, whole, slot))
        answer.sent = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)
        try:
            writer.write(data)
            status, headers = await read_head(reader)
            async for now, event in read_events(reader, headers):
                if status != 200 or "error" in event:
                    raise RuntimeError(f"status {status}: {json.dumps(event)[:300]}")
                if self.dialect.read(event, answer):
                    answer.texts.append(now)
                    if on_text:
                        on_text(answer)
        finally:
            writer.close()
        answer.end = time.perf_counter()
        answer.check()
        self.answers.append(answer)
        return answer

    async def call(self, path, body=None):
        """(status, object) of any other endpoint."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request_bytes(path, body))
            status, headers = await read_head(reader)
            text = b"".join([piece async for piece in read_pieces(reader, headers)])
        finally:
            writer.close()
        return status, json.loads(text)
