"""Writes tests/corpora/tokenizer_json (a small tokenizer and variants of the file), tokenizer_golden.json (what PyPI
`tokenizers` makes of 128 lines and 16 pairs with it) and wordpiece_text (lines as seeds for the fuzzer).

Needs tokenizers (0.23): python write_tokenizer_samples.py
"""

import json
import pathlib

from tokenizers import AddedToken, Tokenizer, decoders, processors
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

import test_tokenizer
import tokenizer_lines

CORPORA = pathlib.Path(__file__).resolve().parents[1] / "corpora"
LINES = 128


def normal_words(line, normalizer=BertNormalizer(), split=BertPreTokenizer()):
    return [word for word, _ in split.pre_tokenize_str(normalizer.normalize_str(line))]


def small_vocabulary():
    """Whole words, then pieces of two characters, then most characters: some words stay unknown."""
    words = sorted({w for line in tokenizer_lines.lines(LINES) for w in normal_words(line) if len(w) < 12})
    characters = sorted({c for w in words for c in w if ord(c) < 0x3000})
    tokens = ["[PAD]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens += words[::6]
    tokens += sorted({"##" + w[i : i + 2] for w in words for i in range(1, len(w) - 1)})[::2]
    characters = [c for i, c in enumerate(characters) if i % 4]
    tokens += characters + ["##" + c for c in characters]
    return {token: i for i, token in enumerate(dict.fromkeys(tokens))}


def small_tokenizer():
    tokenizer = Tokenizer(WordPiece(small_vocabulary(), unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    ids = [(t, tokenizer.token_to_id(t)) for t in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids
    )
    return tokenizer


def every_code_point():
    """FNV-1a over what normaliser and splitter make of every code point between letters."""
    points = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    value = 0xCBF29CE484222325
    for i in range(0, len(points), 64):
        line = " ".join(f"a{chr(c)}b" for c in points[i : i + 64])
        text = " ".join(normal_words(line)) + "\n" + BertNormalizer(strip_accents=False).normalize_str(line)
        for byte in text.encode():
            value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def write_golden(tokenizer):
    lines = tokenizer_lines.lines(LINES)
    requests = [{"text": line} for line in lines]
    requests += [{"text": a, "pair": b} for a, b in zip(lines[:16], lines[16:])]
    cases = [request | test_tokenizer.answer(tokenizer, request) for request in requests]
    out = {"every_code_point": str(every_code_point()), "cases": cases}
    text = json.dumps(out, separators=(",", ":"))
    (CORPORA / "tokenizer_golden.json").write_text(text.replace('{"text"', '\n{"text"') + "\n")


def write_variants(folder, tokenizer):
    """Small files that use the other parts."""
    whole = json.loads(tokenizer.to_str())
    vocabulary = {t: i for i, t in enumerate(["[UNK]", "[CLS]", "[SEP]", "a", "##b", "."])}
    tiny = json.loads(json.dumps(whole))
    tiny["model"]["vocab"] = vocabulary
    flags = dict(single_word=False, lstrip=True, rstrip=False, normalized=True, special=False)
    tiny["added_tokens"] = [{"id": 9, "content": "Foo"} | flags]
    tiny["post_processor"]["special_tokens"] = {
        t: {"id": t, "ids": [vocabulary[t]], "tokens": [t]} for t in ("[CLS]", "[SEP]")
    }
    tiny["truncation"] = {"direction": "Left", "max_length": 8, "strategy": "OnlyFirst", "stride": 0}
    tiny["padding"] = {
        "strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": 8, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"
    }  # fmt: skip
    (folder / "tiny.json").write_text(json.dumps(tiny))
    tiny["post_processor"] = {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]}
    tiny["padding"] |= {"strategy": "BatchLongest", "direction": "Left"}
    tiny["truncation"] |= {"strategy": "LongestFirst"}
    tiny["decoder"] = None
    (folder / "bert_processing.json").write_text(json.dumps(tiny))


def main():
    folder = CORPORA / "tokenizer_json"
    folder.mkdir(exist_ok=True)
    tokenizer = small_tokenizer()
    (folder / "small.json").write_text(tokenizer.to_str() + "\n")
    write_golden(tokenizer)
    write_variants(folder, tokenizer)

    folder = CORPORA / "wordpiece_text"
    folder.mkdir(exist_ok=True)
    for i, line in enumerate(tokenizer_lines.lines(40, seed=5)):
        if line:
            (folder / f"{i}.txt").write_bytes(line.encode())


if __name__ == "__main__":
    main()
