#!/usr/bin/env python3
"""Writes the tokenizer goldens of a GGUF file with libraries that share no code with hexad.

Byte-level BPE ("gpt2") goes through Hugging Face tokenizers, SentencePiece-style BPE ("llama")
through sentencepiece itself, each built from the tokens that the file carries:

    make_tokenizer_goldens.py MODEL.gguf > tests/golden/tokenizer/NAME.jsonl

One line a text: {"text", "ids" (plain), "special_ids" (control tokens in the text are parsed)}.
Needs the packages gguf, tokenizers, sentencepiece and protobuf.
"""

import json
import random
import sys

from gguf import GGUFReader

CONTROL, USER_DEFINED = 3, 4

TEXTS = [
    "", " ", "  ", "   ", "\t", "\n", "\n\n", "\n\n\n", "\r\n\r\n", "\n" * 40, " " * 40,
    "Hello", " Hello", "  Hello", "Hello world", "Hello, world!", "Hello\nworld  \n  again",
    "I'm sure they'll say it's WE'VE DON'T", "3.14159 1234567890 1,000,000", "①②③ ½ Ⅷ ٣٤٥ १२३",
    "naïve café Übergröße œuvre ﬁne", "e\u0301 o\u0308 combining a\u0323\u0302",
    "Привет, как дела?", "你好，世界！今天天气怎么样？", "こんにちは世界。カタカナ", "안녕하세요 세계",
    "مرحبا بالعالم", "שלום עולם", "नमस्ते दुनिया", "สวัสดีชาวโลก", "Ελληνικά γράμματα",
    "🙂🙃🚀 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪", "\u200b\u200d\ufeff\u00a0\u2003\u3000x", "a\u00a0b\u2009c\u202fd",
    "\u180e x\u180ey", "\u0085 x\u0085y", "\u2028x\u2029y", "x\u000by\u000cz",
    "def f(x):\n    return x ** 2  # square\n\n\nclass A:\n\tpass\n",
    "#include <vector>\nint main() { std::vector<int> v{1,2,3}; return v[0]; }\n",
    '{"key": [1, 2.5, null, true], "nested": {"a": "b"}}', "https://example.org/a?b=c&d=%20#e",
    "user@example.org <tag attr='x'>text</tag>", "=====-----_____+++++*****", "a" * 200, "ab" * 150,
    "!" * 130, "0" * 100, "é" * 90, "好" * 90, "🙂" * 40, "The quick brown fox jumps over it. " * 8,
    "<0x41><0x0A>", "Ġword Ċ", "\x01\x02\x7f", "trailing space ", "trailing newline\n",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "<bos><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n", "<|endoftext|>x<eos>y",
    "<|im_start", "|im_end|>", "<unused0><unused1>", "<table><tr><td>x</td></tr></table>",
]


def random_texts(seed, count):
    rng = random.Random(seed)
    ranges = [(0x20, 0x7E), (0x20, 0x7E), (0x09, 0x0D), (0xA0, 0x17F), (0x370, 0x3FF),
              (0x400, 0x4FF), (0x900, 0x97F), (0x3040, 0x30FF), (0x4E00, 0x4FFF),
              (0xAC00, 0xACFF), (0x1F600, 0x1F64F)]
    for _ in range(count):
        text = ""
        for _ in range(rng.randint(1, 30)):
            low, high = rng.choice(ranges)
            text += "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 6)))
            text += rng.choice(["", " ", "  ", "\n", "", ""])
        yield text


def field(reader, key, default=None):
    found = reader.fields.get("tokenizer.ggml." + key)
    return found.contents() if found else default


def byte_level(reader):
    from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers
    tokens, types = field(reader, "tokens"), field(reader, "token_type")
    merges = [tuple(merge.split(" ")) for merge in field(reader, "merges")]
    splits = {"smollm": [pre_tokenizers.Digits(individual_digits=True)], "gpt-2": []}
    before = splits[field(reader, "pre")]

    def make(added):
        tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            before + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
        tokenizer.add_special_tokens(
            [AddedToken(tokens[i], normalized=False, special=True) for i in added])
        return lambda text: tokenizer.encode(text, add_special_tokens=False).ids

    return (make([i for i, t in enumerate(types) if t == USER_DEFINED]),
            make([i for i, t in enumerate(types) if t in (CONTROL, USER_DEFINED)]))


def sentence_piece(reader):
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2 as pb
    tokens, types = field(reader, "tokens"), field(reader, "token_type")
    scores = field(reader, "scores")

    def make(parse_control):
        model = pb.ModelProto()
        for i, (token, kind, score) in enumerate(zip(tokens, types, scores)):
            piece = model.pieces.add()
            piece.piece, piece.score = token, score
            if kind == USER_DEFINED:
                piece.piece = token.replace(" ", "\u2581")
            piece.type = kind
            if parse_control and kind == CONTROL:
                piece.type = USER_DEFINED
        model.trainer_spec.model_type = pb.TrainerSpec.BPE
        model.trainer_spec.byte_fallback = True
        model.trainer_spec.vocab_size = len(tokens)
        for role in ("unk", "bos", "eos", "pad"):
            key = {"unk": "unknown", "pad": "padding"}.get(role, role) + "_token_id"
            setattr(model.trainer_spec, role + "_id", field(reader, key, -1))
            if field(reader, key) is not None:
                setattr(model.trainer_spec, role + "_piece", tokens[field(reader, key)])
        model.normalizer_spec.name = "identity"
        model.normalizer_spec.add_dummy_prefix = bool(field(reader, "add_space_prefix", True))
        model.normalizer_spec.remove_extra_whitespaces = False
        model.normalizer_spec.escape_whitespaces = True
        processor = sentencepiece.SentencePieceProcessor()
        processor.LoadFromSerializedProto(model.SerializeToString())
        return lambda text: processor.EncodeAsIds(text)

    return make(False), make(True)


def main():
    reader = GGUFReader(sys.argv[1])
    makers = {"gpt2": byte_level, "llama": sentence_piece}
    plain, special = makers[field(reader, "model")](reader)
    for text in TEXTS + list(random_texts(7, 60)):
        line = {"text": text, "ids": plain(text), "special_ids": special(text)}
        print(json.dumps(line, ensure_ascii=True))


if __name__ == "__main__":
    main()
