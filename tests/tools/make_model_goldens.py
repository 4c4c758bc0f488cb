#!/usr/bin/env python3
"""Tiny random models of each family, and the logits that Hugging Face transformers gives for them.

    python3 tests/tools/make_model_goldens.py tests/golden/models

Needs torch, transformers and gguf. For each model NAME it writes
  NAME.gguf    the weights, F32, under GGUF's names and conventions
  NAME.logits  int32 tokens, int32 vocabulary; int32 ids [tokens]; float32 [tokens, vocabulary]
"""

import math
import pathlib
import sys

import gguf
import numpy as np
import torch
from transformers import (Gemma3ForCausalLM, Gemma3TextConfig, LlamaConfig, LlamaForCausalLM,
                          Qwen2Config, Qwen2ForCausalLM)

TOKENS = 48
VOCABULARY = 64

COMMON = dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=32, num_attention_heads=4,
              num_key_value_heads=2, max_position_embeddings=128, attn_implementation="eager")

LLAMA3_ROPE = dict(rope_type="llama3", rope_theta=1000.0, factor=8.0, low_freq_factor=1.0,
                   high_freq_factor=4.0, original_max_position_embeddings=32)


def randomise(model, norms_around):
    """Weights large enough that every part of a layer changes the logits."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if "norm" in name:
                parameter.copy_(norms_around + 0.2 * noise)
            elif name.endswith("bias"):
                parameter.copy_(0.3 * noise)
            elif "embed_tokens" in name or "lm_head" in name:
                parameter.copy_(noise * 0.7)
            else:
                parameter.copy_(noise / math.sqrt(parameter.shape[1]))


def permute(weight, heads):
    """Hugging Face rotates halves of a head; GGUF's llama rotates neighbours."""
    rows, columns = weight.shape
    return (weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2)
            .reshape(rows, columns))


def llama3_factors(rope, head_dim):
    """The divisors of each frequency, as llama.cpp's converter computes rope_freqs.weight."""
    old = rope["original_max_position_embeddings"]
    low, high = old / rope["low_freq_factor"], old / rope["high_freq_factor"]
    factors = []
    for i in range(0, head_dim, 2):
        wave = 2 * math.pi * rope["rope_theta"] ** (i / head_dim)
        if wave < high:
            factors.append(1.0)
        elif wave > low:
            factors.append(rope["factor"])
        else:
            smooth = (old / wave - rope["low_freq_factor"]) / (
                rope["high_freq_factor"] - rope["low_freq_factor"])
            factors.append(1.0 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(factors, dtype=np.float32)


TENSORS = {
    "input_layernorm.weight": "attn_norm.weight",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name, gemma):
    if name == "model.embed_tokens.weight":
        return "token_embd.weight"
    if name == "model.norm.weight":
        return "output_norm.weight"
    if name == "lm_head.weight":
        return "output.weight"
    _, _, layer, rest = name.split(".", 3)
    if rest == "post_attention_layernorm.weight":
        rest = "post_attention_norm.weight" if gemma else "ffn_norm.weight"
    elif rest == "pre_feedforward_layernorm.weight":
        rest = "ffn_norm.weight"
    elif rest == "post_feedforward_layernorm.weight":
        rest = "post_ffw_norm.weight"
    for old, new in TENSORS.items():
        rest = rest.replace(old, new)
    return f"blk.{layer}.{rest}"


def write(folder, name, model, architecture, head_dim, extra):
    config = model.config
    writer = gguf.GGUFWriter(folder / f"{name}.gguf", architecture)
    writer.add_name(f"tiny {name}")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    extra(writer)
    gemma = architecture == "gemma3"
    for key, parameter in model.named_parameters():
        data = parameter.detach().numpy().astype(np.float32)
        if architecture == "llama" and ".q_proj." in key:
            data = permute(data, config.num_attention_heads)
        elif architecture == "llama" and ".k_proj." in key:
            data = permute(data, config.num_key_value_heads)
        elif gemma and "norm" in key:
            data = data + 1
        writer.add_tensor(gguf_name(key, gemma), np.ascontiguousarray(data))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    ids = torch.randint(0, VOCABULARY, (1, TOKENS), generator=torch.Generator().manual_seed(11))
    with torch.no_grad():
        logits = model(ids).logits[0].numpy().astype(np.float32)
    with open(folder / f"{name}.logits", "wb") as out:
        out.write(np.array([TOKENS, VOCABULARY], dtype=np.int32).tobytes())
        out.write(ids[0].numpy().astype(np.int32).tobytes())
        out.write(logits.tobytes())
    print(f"{name}: logits {logits.min():.3f} to {logits.max():.3f}, deviation {logits.std():.3f}")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)

    # Llama with grouped queries, an own head, and the frequency factors of Llama 3.
    model = LlamaForCausalLM(LlamaConfig(**COMMON, num_hidden_layers=2, rms_norm_eps=1e-5,
                                         rope_parameters=LLAMA3_ROPE)).float().eval()
    randomise(model, 1)

    def llama(writer):
        writer.add_rope_freq_base(LLAMA3_ROPE["rope_theta"])
        writer.add_tensor("rope_freqs.weight", llama3_factors(LLAMA3_ROPE, 8))
    write(folder, "llama", model, "llama", 8, llama)

    # Qwen 2: biases, halves rotated, the embedding as head.
    model = Qwen2ForCausalLM(Qwen2Config(
        **COMMON, num_hidden_layers=2, rms_norm_eps=1e-6, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=5000.0))).float().eval()
    randomise(model, 1)
    write(folder, "qwen2", model, "qwen2", 8, lambda writer: writer.add_rope_freq_base(5000.0))

    # Gemma 3: one layer in six sees everything, with scaled RoPE; the window is 8 of 48 tokens.
    # Heads wider than the model's width by their number.
    model = Gemma3ForCausalLM(Gemma3TextConfig(
        **{**COMMON, "hidden_size": 24, "intermediate_size": 24}, num_hidden_layers=7, head_dim=8,
        query_pre_attn_scalar=8, sliding_window=8,
        rope_parameters=dict(
            full_attention=dict(rope_type="linear", rope_theta=50000.0, factor=4.0),
            sliding_attention=dict(rope_type="default", rope_theta=10000.0)))).float().eval()
    randomise(model, 0)

    def gemma(writer):
        writer.add_rope_freq_base(50000.0)
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(4.0)
        writer.add_sliding_window(8)
    write(folder, "gemma3", model, "gemma3", 8, gemma)


if __name__ == "__main__":
    main()
