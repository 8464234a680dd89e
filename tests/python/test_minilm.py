"""MiniLM: hidden states as ONNX Runtime's, embeddings as NumPy's pooling of ONNX Runtime's hidden states."""

import pathlib
import tempfile
import unittest

import numpy as np
import tokenizers

import support

BATCHES = (1, 3, 32)
LENGTHS = (1, 8, 128, 512)
VOCABULARY = 30522
MAX_DIFFERENCE = 1e-4
MIN_COSINE = 0.99999

SENTENCES = [
    "The cat sleeps on the warm windowsill.",
    "A kitten is dozing in the sun by the window.",
    "Interest rates were raised again by the central bank.",
    "x",
    "Ünïcödé accents, 中文字符, emoji 🙂 and\ttabs — all in one line; don't split it wrongly!",
    "antidisestablishmentarianism and pneumonoultramicroscopicsilicovolcanoconiosis",
    " ".join(["A longer line repeats itself to fill more than one tile of keys."] * 6),
    "3.14159 * 2 = 6.28318",
]


def feeds_of(batch, seq, padded, seed):
    random = np.random.default_rng(seed)
    lengths = random.integers(1, seq + 1, batch) if padded else np.full(batch, seq)
    if padded:
        lengths[0] = seq  # as a tokenizer pads: to the longest of the batch
    return {
        "input_ids": random.integers(0, VOCABULARY, (batch, seq)),
        "attention_mask": (np.arange(seq) < lengths[:, np.newaxis]).astype(np.int64),
        "token_type_ids": np.zeros((batch, seq), np.int64),
    }


class HiddenStates(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = support.model_path("minilm/model.onnx")
        cls.session = support.ort_session(cls.model)

    def check(self, feeds):
        expected = support.ort_run(self.session, feeds)
        actual = support.rlx_run(self.model, feeds)
        self.assertEqual(set(actual), set(expected))
        support.assert_close(
            self, actual["last_hidden_state"], expected["last_hidden_state"], MAX_DIFFERENCE, "last_hidden_state"
        )

    def test_every_batch_and_length(self):
        for batch in BATCHES:
            for seq in LENGTHS:
                with self.subTest(batch=batch, seq=seq):
                    self.check(feeds_of(batch, seq, padded=False, seed=seq + batch))

    def test_padded(self):
        for batch in BATCHES:
            for seq in LENGTHS:
                if batch == 1 or seq == 1:
                    continue  # nothing to pad: the row is the longest
                with self.subTest(batch=batch, seq=seq):
                    self.check(feeds_of(batch, seq, padded=True, seed=seq * batch))

    def test_one_row_padded_beyond_its_length(self):
        for seq in LENGTHS[1:]:
            with self.subTest(seq=seq):
                feeds = feeds_of(1, seq, padded=False, seed=seq)
                feeds["attention_mask"][:, seq // 2 :] = 0
                self.check(feeds)

    def test_token_types(self):
        feeds = feeds_of(3, 8, padded=False, seed=5)
        feeds["token_type_ids"] = np.tile(np.arange(8) // 4, (3, 1))
        self.check(feeds)

    def test_two_threads_give_the_bits_of_one(self):
        feeds = feeds_of(3, 128, padded=True, seed=9)
        one, two = (support.rlx_run(self.model, feeds, "--threads", count)["last_hidden_state"] for count in (1, 2))
        self.assertTrue(np.array_equal(one, two))

    def test_a_row_gives_the_same_bits_alone(self):
        feeds = feeds_of(3, 128, padded=False, seed=11)
        batch = support.rlx_run(self.model, feeds)["last_hidden_state"]
        alone = support.rlx_run(self.model, {name: array[1:2] for name, array in feeds.items()})["last_hidden_state"]
        self.assertTrue(np.array_equal(batch[1:2], alone))


class Embeddings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = support.model_path("minilm")
        cls.session = support.ort_session(cls.folder / "model.onnx")
        cls.tokenizer = tokenizers.Tokenizer.from_file(str(cls.folder / "tokenizer.json"))
        cls.tokenizer.enable_padding()

    def expected(self, lines):
        """Mean over the tokens that are no padding, scaled to length 1."""
        encoded = self.tokenizer.encode_batch(lines)
        feeds = {
            "input_ids": np.array([line.ids for line in encoded]),
            "attention_mask": np.array([line.attention_mask for line in encoded]),
            "token_type_ids": np.array([line.type_ids for line in encoded]),
        }
        hidden = support.ort_run(self.session, feeds)["last_hidden_state"].astype(np.float64)
        mask = feeds["attention_mask"][:, :, np.newaxis]
        mean = (hidden * mask).sum(1) / mask.sum(1)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

    def check(self, actual, lines):
        actual = np.array(actual)
        expected = self.expected(lines)
        self.assertEqual(actual.shape, expected.shape)
        np.testing.assert_allclose(np.linalg.norm(actual, axis=1), 1, atol=1e-5)
        cosines = (actual * expected).sum(1) / np.linalg.norm(actual, axis=1)
        self.assertGreaterEqual(cosines.min(), MIN_COSINE, list(zip(lines, cosines)))

    def test_lines_of_a_file(self):
        with tempfile.TemporaryDirectory(prefix="rlx-test-") as folder:
            path = pathlib.Path(folder) / "sentences.txt"
            path.write_text("\n".join(SENTENCES) + "\n")
            self.check(support.rlx_json("embed", "--model", self.folder, "--file", path)["embeddings"], SENTENCES)

    def test_texts_on_the_command_line(self):
        lines = SENTENCES[:3]
        self.check(support.rlx_json("embed", "--model", self.folder, *lines)["embeddings"], lines)


if __name__ == "__main__":
    unittest.main()
