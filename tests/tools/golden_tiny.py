#!/usr/bin/env python3
"""Greedy answers of the fallback model by an independent implementation: transformers, float32, on
the dequantised weights of the GGUF file itself. Writes tests/golden/hexad-tiny.json.

    python3 tests/tools/golden_tiny.py --model configs/models/hexad-tiny.gguf \\
        --out tests/golden/hexad-tiny.json
"""

import argparse
import hashlib
import json

import gguf
import jinja2.sandbox
import numpy
import tokenizers
import torch
import transformers

SHORT = 48  # tokens of an answer at most
STORY = "Once upon a time"
CASES = [
    ("story", {"text": STORY}),
    ("prose", {"text": "The dog went to the market. Then"}),
    ("token ids, no begin token", {"tokens": [347, 946, 16, 673, 429, 281, 266, 1031, 18, 422]}),
    ("other scripts", {"text": "naïve café, 你好, привет 🎉:"}),
    ("greeting", {"messages": [{"role": "user", "content": "Hello, my name is Mia."}]}),
    ("system and counting", {"messages": [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": "Count from one to ten."}]}),
    ("several turns", {"messages": [
        {"role": "system", "content": "Answer in short sentences."},
        {"role": "user", "content": "My name is Hugo."},
        {"role": "assistant", "content": "Hello, Hugo! It is nice to meet you."},
        {"role": "user", "content": "What colour is the sky?"},
        {"role": "assistant", "content": "The sky is blue."},
        {"role": "user", "content": "What comes after Monday?"}]}),
    ("unknown subject", {"messages": [
        {"role": "user", "content": "What is the capital of France?"}]}),
    ("long prompt", {"messages": [{"role": "user", "content": "What does a cow say?"},
                                  {"role": "assistant", "content": "A cow moos. It says moo."}] * 40
                     + [{"role": "user", "content": "Tell me a story about a fox."}]}),
]


class Model:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.meta = {k: f.contents() for k, f in reader.fields.items() if not k.startswith("GGUF.")}
        m = lambda key: self.meta["llama." + key]
        heads, kv_heads = m("attention.head_count"), m("attention.head_count_kv")
        self.model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=len(self.meta["tokenizer.ggml.tokens"]), hidden_size=m("embedding_length"),
            intermediate_size=m("feed_forward_length"), num_hidden_layers=m("block_count"),
            num_attention_heads=heads, num_key_value_heads=kv_heads,
            head_dim=m("attention.key_length"), max_position_embeddings=m("context_length"),
            rope_theta=m("rope.freq_base"), rms_norm_eps=m("attention.layer_norm_rms_epsilon"),
            tie_word_embeddings=True, attn_implementation="eager")).eval()
        state = {self.hf_name(t.name): self.array(t, heads, kv_heads) for t in reader.tensors}
        missing, unexpected = self.model.load_state_dict(state, strict=False)
        assert missing == ["lm_head.weight"] and not unexpected, (missing, unexpected)
        self.tokens = self.meta["tokenizer.ggml.tokens"]
        bpe = tokenizers.models.BPE(
            vocab={t: i for i, t in enumerate(self.tokens)},
            merges=[tuple(x.split(" ")) for x in self.meta["tokenizer.ggml.merges"]])
        self.tokenizer = tokenizers.Tokenizer(bpe)
        self.tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        self.tokenizer.decoder = tokenizers.decoders.ByteLevel()
        self.tokenizer.add_special_tokens(
            [t for t, kind in zip(self.tokens, self.meta["tokenizer.ggml.token_type"]) if kind == 3])
        self.eos = self.meta["tokenizer.ggml.eos_token_id"]
        self.bos = self.meta["tokenizer.ggml.bos_token_id"]

    @staticmethod
    def hf_name(name):
        for ours, theirs in [
                ("token_embd", "model.embed_tokens"), ("output_norm", "model.norm"),
                ("blk.", "model.layers."), ("attn_norm", "input_layernorm"),
                ("attn_q", "self_attn.q_proj"), ("attn_k", "self_attn.k_proj"),
                ("attn_v", "self_attn.v_proj"), ("attn_output", "self_attn.o_proj"),
                ("ffn_norm", "post_attention_layernorm"), ("ffn_gate", "mlp.gate_proj"),
                ("ffn_up", "mlp.up_proj"), ("ffn_down", "mlp.down_proj")]:
            name = name.replace(ours, theirs)
        return name

    @staticmethod
    def array(tensor, heads, kv_heads):
        array = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        for part, count in (("attn_q", heads), ("attn_k", kv_heads)):
            if part in tensor.name:  # alternate rows back to halves
                rows, columns = array.shape
                array = array.reshape(count, rows // count // 2, 2, columns).swapaxes(1, 2)
                array = array.reshape(rows, columns)
        return torch.tensor(numpy.array(array, dtype=numpy.float32))

    def prompt(self, case):
        if "tokens" in case:
            return case["tokens"]
        if "messages" in case:
            template = jinja2.sandbox.ImmutableSandboxedEnvironment(
                trim_blocks=True, lstrip_blocks=True).from_string(
                    self.meta["tokenizer.chat_template"])
            text = template.render(messages=case["messages"], add_generation_prompt=True,
                                   bos_token=self.tokens[self.bos], eos_token=self.tokens[self.eos])
            return self.tokenizer.encode(text, add_special_tokens=False).ids
        return [self.bos] + self.tokenizer.encode(case["text"], add_special_tokens=False).ids

    @torch.no_grad()
    def logits(self, ids):
        return self.model(input_ids=torch.tensor([ids])).logits[0]

    def greedy(self, ids, limit):
        """Tokens with the end token, and the lead of each over the second choice."""
        out, leads, first = [], [], None
        while len(out) < limit and (not out or out[-1] != self.eos):
            last = self.logits(ids + out)[-1]
            top = torch.topk(last, 5)
            first = first or [[int(i), round(float(v), 4)] for v, i in zip(*top)]
            out.append(int(top.indices[0]))
            leads.append(round(float(top.values[0] - top.values[1]), 4))
        return out, leads, first

    def text(self, ids):
        return self.tokenizer.decode(ids, skip_special_tokens=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--out")
    parser.add_argument("--ask", nargs="*", help="print the answers to these instead")
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = Model(args.model)
    if args.ask:
        for question in args.ask:
            ids = model.prompt({"messages": [{"role": "user", "content": question}]})
            out, _, _ = model.greedy(ids, 160)
            print(f"> {question}\n{model.text(out)}{'' if out[-1] == model.eos else ' [cut]'}\n")
        return
    cases = []
    for name, case in CASES:
        ids = model.prompt(case)
        out, leads, first = model.greedy(ids, SHORT)
        cases.append({"name": name, **case, "prompt_tokens": ids, "tokens": out,
                      "answer": model.text(out), "ended": out[-1] == model.eos,
                      "lead_over_second": leads, "first_top5": first})
        print(f"{name}: {len(ids)} + {len(out)} tokens, smallest lead {min(leads)}: "
              f"{model.text(out)!r}")
    with open(args.model, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    with open(args.out, "w") as file:
        json.dump({"what": "greedy continuations by transformers in float32 on dequantised weights; "
                           "lead_over_second are differences of logits: below 0.3 or so another "
                           "engine may choose the second",
                   "model": "configs/models/hexad-tiny.gguf", "model_sha256": digest,
                   "cases": cases}, file, ensure_ascii=False, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
