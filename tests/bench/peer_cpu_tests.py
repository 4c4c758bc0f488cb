"""What peer_cpu.py measures: the same test in the words of both engines. Pure."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Test:
    name: str             # as in the table
    hexad: str            # as `hexad bench engine` takes it
    tokens: int           # of one repetition, all sequences together
    peer_program: str
    peer_field: str       # of a line of its output: tokens a second
    batch: int = 1
    depth: int = 0
    prefill: int = 0
    settings: tuple = ((),)  # flags of the peer to choose from, by the first sample of each

    def peer_arguments(self, samples):
        """So that the program prints `samples` results, one a line."""
        def repeated(value):
            return ",".join([str(value)] * samples)
        if self.peer_program == "llama-batched-bench":
            prompt, each = BATCH_PROMPT, self.tokens // self.batch
            context = -(-(prompt + self.batch * each) // 256) * 256
            return ["-c", str(context), "-b", "2048", "-ub", "512", "-npp", str(prompt),
                    "-ntg", str(each), "-npl", repeated(self.batch), "-pps", "-kvu",
                    "--output-format", "jsonl"]
        arguments = ["-r", "1", "--delay", "1", "-o", "jsonl"]
        if self.prefill:
            return arguments + ["-p", repeated(self.prefill), "-n", "0", "--no-warmup"]
        return arguments + ["-p", "0", "-n", repeated(self.tokens), "-d", str(self.depth)]


BATCH_PROMPT = 128  # tokens that the sequences of a batch share
FA_OFF, FA_ON = ("-fa", "off"), ("-fa", "on")


def decode(tokens=64):
    return Test("decode", f"decode:tokens={tokens}", tokens, "llama-bench", "avg_ts")


def prefill(tokens=512):
    return Test("prefill", f"prefill:tokens={tokens}", tokens, "llama-bench", "avg_ts",
                prefill=tokens, settings=((), FA_OFF, ("-ub", "128")))


def batched(batch):
    each = 16 if batch < 16 else 8
    return Test(f"batch {batch}", f"decode:tokens={each}:batch={batch}:depth={BATCH_PROMPT}",
                each * batch, "llama-batched-bench", "speed_tg", batch=batch,
                settings=(FA_ON, FA_OFF))


def deep(depth=4096, tokens=32):
    return Test("depth", f"decode:tokens={tokens}:depth={depth}", tokens, "llama-bench", "avg_ts",
                depth=depth, settings=(FA_OFF, FA_ON))


ODD_BATCHES = (2, 3, 4, 5, 6, 7)
TESTS = {"decode": [decode()], "prefill": [prefill()], "batch8": [batched(8)],
         "batch32": [batched(32)], "odd": [batched(n) for n in ODD_BATCHES], "depth": [deep()]}
