"""RLX's tokenizer gives what PyPI `tokenizers` gives: ids, types, masks, places in the text, decoded text."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import tokenizers
from tokenizers import AddedToken, processors
from tokenizers.normalizers import BertNormalizer

import tokenizer_lines

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = pathlib.Path(os.environ.get("RLX_COMMAND", ROOT / "build/release/bin/rlx")).parent / "tokenize_lines"
MODEL = pathlib.Path(os.environ.get("RLX_TOKENIZER_MODEL", ROOT / "models/minilm"))


def model_file(name):
    path = MODEL / name
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; `make setup` fetches it")
    return path


def fresh():
    """The model's tokenizer without the truncation and padding of its file."""
    tokenizer = tokenizers.Tokenizer.from_file(str(model_file("tokenizer.json")))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def ask(path, requests):
    """What RLX's tokenizer of that file answers to each request."""
    text = "".join(json.dumps(request) + "\n" for request in requests)
    finished = subprocess.run([COMMAND, path], input=text, capture_output=True, text=True, timeout=300)
    if finished.returncode != 0:
        raise AssertionError(finished.stderr)
    return [json.loads(line) for line in finished.stdout.splitlines()]


def ask_saved(tokenizer, requests):
    """The same for a tokenizer made here."""
    with tempfile.TemporaryDirectory(prefix="rlx-test-") as folder:
        path = pathlib.Path(folder) / "tokenizer.json"
        tokenizer.save(str(path))
        return ask(path, requests)


def byte_ranges(encoding, texts):
    """Places in bytes: the library counts characters."""
    starts = []
    for text in texts:
        at = [0]
        for character in text:
            at.append(at[-1] + len(character.encode()))
        starts.append(at)
    out = []
    for (begin, end), sequence in zip(encoding.offsets, encoding.sequence_ids):
        at = starts[sequence or 0]
        out.append([at[begin], at[end]])
    return out


def answer(tokenizer, request):
    texts = [request[key] for key in ("text", "pair") if key in request]
    try:
        encoding = tokenizer.encode(*texts)
    except Exception as error:
        return {"error": str(error)}
    return {
        "ids": encoding.ids,
        "type_ids": encoding.type_ids,
        "mask": encoding.attention_mask,
        "ranges": byte_ranges(encoding, texts),
        "decoded": tokenizer.decode(encoding.ids),
        "decoded_all": tokenizer.decode(encoding.ids, skip_special_tokens=False),
    }


class Tokenizer(unittest.TestCase):
    maxDiff = 2000

    def assert_equal_answers(self, tokenizer, requests, answers, but=()):
        self.assertEqual(len(requests), len(answers))
        for request, found in zip(requests, answers):
            wanted = answer(tokenizer, request)
            if "error" in wanted:
                self.assertIn("error", found, request)
                continue
            for key in but:
                del wanted[key], found[key]
            self.assertEqual(wanted, found, request)

    def check(self, tokenizer, requests, but=()):
        self.assert_equal_answers(tokenizer, requests, ask_saved(tokenizer, requests), but)

    def test_a_thousand_lines(self):
        requests = [{"text": line} for line in tokenizer_lines.lines(1000)]
        self.check(fresh(), requests)
        answers = ask(model_file("tokenizer.json"), requests)
        self.assert_equal_answers(tokenizers.Tokenizer.from_file(str(model_file("tokenizer.json"))), requests, answers)

    def test_vocab_txt(self):
        requests = [{"text": line} for line in tokenizer_lines.lines(1000, seed=7)]
        with tempfile.TemporaryDirectory(prefix="rlx-test-") as folder:
            path = pathlib.Path(folder) / "vocab.txt"
            path.write_bytes(model_file("vocab.txt").read_bytes())
            answers = ask(folder, requests)
            self.assert_equal_answers(tokenizers.BertWordPieceTokenizer(str(path)), requests, answers)
            # Cased, told by the file beside it.
            (pathlib.Path(folder) / "tokenizer_config.json").write_text('{"do_lower_case": false}')
            answers = ask(path, requests)
            cased = tokenizers.BertWordPieceTokenizer(str(path), lowercase=False)
            self.assert_equal_answers(cased, requests, answers)

    def test_pairs(self):
        lines = tokenizer_lines.lines(400, seed=1)
        requests = [{"text": a, "pair": b} for a, b in zip(lines[::2], lines[1::2])]
        self.check(fresh(), requests)

    def test_every_normalizer_switch(self):
        requests = [{"text": line} for line in tokenizer_lines.lines(200, seed=2)]
        for clean in (False, True):
            for chinese in (False, True):
                for strip in (None, False, True):
                    for lower in (False, True):
                        tokenizer = fresh()
                        tokenizer.normalizer = BertNormalizer(clean, chinese, strip, lower)
                        with self.subTest(clean=clean, chinese=chinese, strip=strip, lower=lower):
                            self.check(tokenizer, requests)

    def test_truncation_and_padding(self):
        lines = tokenizer_lines.lines(120, seed=3)
        requests = [{"text": line} for line in lines]
        requests += [{"text": a, "pair": b} for a, b in zip(lines, reversed(lines))]
        for strategy in ("longest_first", "only_first", "only_second"):
            for length in (3, 4, 7, 8, 21, 64):
                tokenizer = fresh()
                tokenizer.enable_truncation(length, strategy=strategy, direction="left" if length == 7 else "right")
                if length != 21:
                    tokenizer.enable_padding(length=40 if length == 8 else None, pad_to_multiple_of=16, pad_id=5, pad_type_id=1, direction="left" if length == 64 else "right")
                with self.subTest(strategy=strategy, length=length):
                    self.check(tokenizer, requests)

    def test_added_tokens(self):
        tokenizer = fresh()
        tokenizer.add_tokens(
            [
                AddedToken("Foo", single_word=True),
                AddedToken("FooBar"),
                AddedToken("éa", normalized=True),
                AddedToken("Raw", normalized=False, lstrip=True),
                AddedToken("rig", rstrip=True, normalized=False),
                AddedToken("both", lstrip=True, rstrip=True),
                AddedToken("漢字"),
                AddedToken("the end"),
            ]
        )
        tokenizer.add_special_tokens([AddedToken("<s>", special=True, lstrip=True, rstrip=True)])
        parts = ["Foo", "foo", "FooBar", "foobar", "ÉA", "éa", "ea", "Raw", "raw", "rig", "right", "both", "漢字", "the end", "The  End", "<s>", "[MASK]", " ", "  ", "\t", "\u2003", "x", "_", "1", "é", "\u0301", "-", "\u200d", "Ⓐ"]
        rng = tokenizer_lines.random.Random(4)
        requests = [{"text": "".join(rng.choices(parts, k=rng.randrange(1, 9)))} for _ in range(1500)]
        # The library decodes "Foo" as it stands normalised; we give back the token.
        self.check(tokenizer, requests, but=("decoded", "decoded_all"))

    def test_post_processors(self):
        requests = [{"text": "a b"}, {"text": "a b", "pair": "c d e"}, {"text": "", "pair": ""}]
        template = processors.TemplateProcessing(
            single="[SEP]:3 $A:2 [CLS]",
            pair="$B:4 [MASK]:1 $A:5 [MASK]",
            special_tokens=[("[CLS]", 101), ("[SEP]", 102), ("[MASK]", 103)],
        )
        for processor in (None, processors.BertProcessing(("[SEP]", 102), ("[CLS]", 101)), template):
            tokenizer = fresh()
            if processor is None:
                text = json.loads(tokenizer.to_str())
                text["post_processor"] = None
                tokenizer = tokenizers.Tokenizer.from_str(json.dumps(text))
            else:
                tokenizer.post_processor = processor
            self.check(tokenizer, requests)

    def test_every_code_point(self):
        """Alone, and between letters, where it may split, vanish or combine."""
        points = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
        characters = sorted({c for text in tokenizer_lines.lines(1000) for c in text})
        texts = [f"a{c}b {c}" for c in characters]
        texts += [" ".join(f"a{c}b" for c in points[i : i + 64]) for i in range(0, len(points), 64)]
        tokenizer = fresh()
        requests = [{"text": text} for text in texts]
        self.check(tokenizer, requests)


if __name__ == "__main__":
    unittest.main()
