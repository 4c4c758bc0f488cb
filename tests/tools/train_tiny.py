#!/usr/bin/env python3
"""Trains the fallback model hexad-tiny on the text of tiny_corpus.py: its tokenizer, then the model.

Needs torch, transformers and tokenizers; two CPU cores and half an hour suffice. Writes a
checkpoint after every stage of --save-every steps; export_tiny.py makes the GGUF file from it.

    python3 tests/tools/train_tiny.py --out /tmp/tiny --minutes 25
"""

import argparse
import itertools
import json
import math
import os
import time

import numpy
import tokenizers
import torch
import transformers

import tiny_corpus
from tiny_words import OTHER

SPECIALS = ["<|begin|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
VOCAB = 2048
IGNORE = -100

CONFIG = dict(vocab_size=VOCAB, hidden_size=128, intermediate_size=384, num_hidden_layers=5,
              num_attention_heads=4, num_key_value_heads=2, head_dim=32,
              max_position_embeddings=2048, rope_theta=10000.0, rms_norm_eps=1e-5,
              tie_word_embeddings=True, bos_token_id=0, eos_token_id=1, attention_bias=False)


def train_tokenizer(seed):
    """Byte-level BPE: every input has a tokenisation, known words are mostly one token."""
    def lines():
        for doc in itertools.islice(tiny_corpus.documents(seed), 12000):
            for _, text in doc:
                yield text
        # Enough of the other words that whole ones are merged, fewer than the stories have.
        for word in OTHER:
            yield " ".join([word, word.lower(), word.capitalize()] * 12)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.train_from_iterator(lines(), tokenizers.trainers.BpeTrainer(
        vocab_size=VOCAB, special_tokens=SPECIALS, show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    assert tokenizer.get_vocab_size() == VOCAB, tokenizer.get_vocab_size()
    return tokenizer


def encode(tokenizer, doc):
    """Ids and labels of a document. Nothing is learnt from text that cannot be foreseen: system
    messages, and questions which the answer declines."""
    ids, labels = [0], [0]
    for i, (role, text) in enumerate(doc):
        body = tokenizer.encode(text, add_special_tokens=False).ids + [1]
        learn = role != "system"
        if role == "user" and doc[i + 1][1] in tiny_corpus.DECLINES:
            learn = False
        if role != "text":
            ids.append(SPECIALS.index(f"<|{role}|>"))
            labels.append(ids[-1])
        ids += body
        labels += body if learn else [IGNORE] * len(body)
    return ids, labels


class Stream:
    """Documents one after the other, cut into rows."""

    def __init__(self, tokenizer, seed):
        self.tokenizer, self.documents = tokenizer, tiny_corpus.documents(seed)
        self.ids, self.labels = [], []

    def batch(self, rows, length):
        need = rows * length
        while len(self.ids) < need:
            ids, labels = encode(self.tokenizer, next(self.documents))
            self.ids += ids
            self.labels += labels
        out = [torch.tensor(numpy.array(x[:need])).view(rows, length)
               for x in (self.ids, self.labels)]
        self.ids, self.labels = self.ids[need:], self.labels[need:]
        return out


def loss_of(model, ids, labels):
    logits = model(input_ids=ids).logits
    return torch.nn.functional.cross_entropy(
        logits[:, :-1].reshape(-1, VOCAB).float(), labels[:, 1:].reshape(-1), ignore_index=IGNORE)


def save(model, tokenizer, out, record):
    model.save_pretrained(out)
    tokenizer.save(os.path.join(out, "tokenizer.json"))
    with open(os.path.join(out, "training.json"), "w") as file:
        json.dump(record, file, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1600)
    parser.add_argument("--long-share", type=float, default=0.15,
                        help="share of the steps, the last, on rows of 2048 tokens")
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--minutes", type=float, default=25, help="wall time before it stops early")
    parser.add_argument("--save-every", type=int, default=200)
    parser.add_argument("--init", help="go on from this checkpoint and its tokenizer")
    parser.add_argument("--echo-weight", type=int, default=tiny_corpus.ECHO_WEIGHT)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    os.makedirs(args.out, exist_ok=True)
    tiny_corpus.set_echo_weight(args.echo_weight)
    if args.init:
        tokenizer = tokenizers.Tokenizer.from_file(os.path.join(args.init, "tokenizer.json"))
        model = transformers.LlamaForCausalLM.from_pretrained(args.init)
    else:
        tokenizer = train_tokenizer(args.seed)
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**CONFIG))
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.05},
                                   {"params": vectors, "weight_decay": 0.0}],
                                  lr=args.rate, betas=(0.9, 0.97))
    stream = Stream(tokenizer, args.seed + 1)
    held_out = Stream(tokenizer, args.seed + 1000003)
    start, tokens, shown = time.monotonic(), 0, []
    # The schedule follows the steps done or the time used, whichever is further: a slow machine
    # stops earlier at a finished schedule.
    for step in itertools.count():
        used = (time.monotonic() - start) / 60
        progress = max(step / args.steps, used / args.minutes)
        if progress >= 1:
            break
        rows, length = args.rows, args.length
        if progress > 1 - args.long_share:
            rows, length = max(1, args.rows * args.length // 2048), 2048
        rate = args.rate * min(1, (step + 1) / 60) * (
            0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = loss_of(model, *stream.batch(rows, length))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        tokens += rows * length
        shown.append(loss.item())
        if (step + 1) % 50 == 0:
            print(f"step {step + 1} tokens {tokens} loss {sum(shown) / len(shown):.4f} "
                  f"minutes {used:.1f} progress {progress:.3f}", flush=True)
            shown = []
        if (step + 1) % args.save_every == 0:
            save(model, tokenizer, args.out, {"step": step + 1, "tokens": tokens})
    with torch.no_grad():
        short = [loss_of(model, *held_out.batch(16, 256)).item() for _ in range(16)]
        long = [loss_of(model, *held_out.batch(2, 2048)).item() for _ in range(16)]
    record = {"parameters": model.num_parameters(), "steps": step, "tokens": tokens,
              "minutes": round((time.monotonic() - start) / 60, 1), "seed": args.seed,
              "held_out_loss_256": round(sum(short) / len(short), 4),
              "held_out_loss_2048": round(sum(long) / len(long), 4)}
    save(model, tokenizer, args.out, record)
    print(json.dumps(record))


if __name__ == "__main__":
    main()
