#!/usr/bin/env python3
"""Writes the checkpoint of train_tiny.py as one GGUF file: Q8_0 matrices, F32 norms, llama.cpp's
conventions (rows of Q and K reordered for interleaved RoPE, output head tied to the embedding).

    python3 tests/tools/export_tiny.py --checkpoint /tmp/tiny --out configs/models/hexad-tiny.gguf
"""

import argparse
import json
import os

import gguf
import numpy
import transformers

CHAT_TEMPLATE = """\
{{- bos_token }}
{%- for message in messages %}
{%- if message['role'] == 'assistant' %}
{{- '<|assistant|>' }}
{%- elif message['role'] == 'system' or message['role'] == 'developer' %}
{{- '<|system|>' }}
{%- else %}
{{- '<|user|>' }}
{%- endif %}
{%- if message['content'] is string %}
{{- message['content'] | trim }}
{%- elif message['content'] %}
{%- for part in message['content'] %}
{%- if part['type'] == 'text' %}
{{- part['text'] }}
{%- endif %}
{%- endfor %}
{%- endif %}
{{- '<|end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|assistant|>' }}
{%- endif %}
"""


def interleave(weight, heads):
    """Halves of each head become alternate rows: RoPE then turns neighbours."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def add_tokenizer(writer, path):
    with open(path) as file:
        model = json.load(file)
    vocab = model["model"]["vocab"]
    special = {t["content"] for t in model["added_tokens"]}
    tokens = sorted(vocab, key=vocab.get)
    assert [vocab[t] for t in tokens] == list(range(len(tokens)))
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL if t in special else gguf.TokenType.NORMAL
                            for t in tokens])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(vocab["<|begin|>"])
    writer.add_eos_token_id(vocab["<|end|>"])
    writer.add_eot_token_id(vocab["<|end|>"])
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)


def tensors(model, config):
    """(name, array) in the order of the forward pass."""
    state = {k: v.detach().float().numpy() for k, v in model.state_dict().items()}
    yield "token_embd.weight", state["model.embed_tokens.weight"]
    for i in range(config.num_hidden_layers):
        layer, block = f"model.layers.{i}.", f"blk.{i}."
        yield block + "attn_norm.weight", state[layer + "input_layernorm.weight"]
        yield block + "attn_q.weight", interleave(state[layer + "self_attn.q_proj.weight"],
                                                  config.num_attention_heads)
        yield block + "attn_k.weight", interleave(state[layer + "self_attn.k_proj.weight"],
                                                  config.num_key_value_heads)
        yield block + "attn_v.weight", state[layer + "self_attn.v_proj.weight"]
        yield block + "attn_output.weight", state[layer + "self_attn.o_proj.weight"]
        yield block + "ffn_norm.weight", state[layer + "post_attention_layernorm.weight"]
        yield block + "ffn_gate.weight", state[layer + "mlp.gate_proj.weight"]
        yield block + "ffn_up.weight", state[layer + "mlp.up_proj.weight"]
        yield block + "ffn_down.weight", state[layer + "mlp.down_proj.weight"]
    yield "output_norm.weight", state["model.norm.weight"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()

    model = transformers.LlamaForCausalLM.from_pretrained(args.checkpoint)
    config = model.config
    writer = gguf.GGUFWriter(args.out, "llama")
    writer.add_name("hexad-tiny")
    writer.add_description("Fallback and test model of hexad, trained on generated text")
    writer.add_license("apache-2.0")
    writer.add_size_label("1.2M")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    add_tokenizer(writer, os.path.join(args.checkpoint, "tokenizer.json"))
    for name, array in tensors(model, config):
        array = numpy.ascontiguousarray(array, dtype=numpy.float32)
        if array.ndim == 1:
            writer.add_tensor(name, array)
        else:
            packed = gguf.quants.quantize(array, gguf.GGMLQuantizationType.Q8_0)
            writer.add_tensor(name, packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"{args.out}: {os.path.getsize(args.out)} bytes")


if __name__ == "__main__":
    main()
