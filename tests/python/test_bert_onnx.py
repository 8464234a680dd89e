"""tools/write_bert_onnx.py: its graphs give what BERT's definition gives, written here in NumPy and double precision."""

import json
import math
import pathlib
import tempfile
import unittest

import numpy as np
import onnx

import support
import write_bert_onnx

MAX_DIFFERENCE = 1e-4


def layer_norm(x, weights, module, epsilon):
    centred = x - x.mean(-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
    return centred / deviation * weights[f"{module}.weight"] + weights[f"{module}.bias"]


def linear(x, weights, module):
    return x @ weights[f"{module}.weight"].T + weights[f"{module}.bias"]


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(x, mask, weights, module, heads):
    batch, seq, hidden = x.shape

    def split(name):
        rows = linear(x, weights, f"{module}.{name}").reshape(batch, seq, heads, hidden // heads)
        return rows.transpose(0, 2, 1, 3)

    scores = split("query") @ split("key").transpose(0, 1, 3, 2) / math.sqrt(hidden // heads)
    scores = np.where(mask[:, np.newaxis, np.newaxis, :] == 1, scores, -np.inf)
    return (softmax(scores) @ split("value")).transpose(0, 2, 1, 3).reshape(batch, seq, hidden)


def encode(weights, config, input_ids, attention_mask, token_type_ids):
    """last_hidden_state of a post-norm BERT encoder, from Devlin et al. 2018 (arXiv:1810.04805)."""
    epsilon = config["layer_norm_eps"]
    x = weights["embeddings.word_embeddings.weight"][input_ids]
    x = x + weights["embeddings.token_type_embeddings.weight"][token_type_ids]
    x = x + weights["embeddings.position_embeddings.weight"][: input_ids.shape[1]]
    x = layer_norm(x, weights, "embeddings.LayerNorm", epsilon)
    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        context = attention(x, attention_mask, weights, f"{layer}.attention.self", config["num_attention_heads"])
        x = x + linear(context, weights, f"{layer}.attention.output.dense")
        x = layer_norm(x, weights, f"{layer}.attention.output.LayerNorm", epsilon)
        wide = gelu(linear(x, weights, f"{layer}.intermediate.dense"))
        x = layer_norm(x + linear(wide, weights, f"{layer}.output.dense"), weights, f"{layer}.output.LayerNorm", epsilon)
    return x


class BertOnnx(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = support.model_path("minilm")
        cls.config = json.loads((cls.folder / "config.json").read_text())
        weights = write_bert_onnx.read_safetensors(cls.folder / "model.safetensors")
        cls.weights = {name: array.astype(np.float64) for name, array in weights.items() if array.dtype == np.float32}
        random = np.random.default_rng(7)
        cls.feeds = {
            "input_ids": random.integers(0, cls.config["vocab_size"], (3, 20)),
            "attention_mask": (np.arange(20) < np.array([[20], [1], [13]])).astype(np.int64),
            "token_type_ids": random.integers(0, 2, (3, 20)),
        }
        cls.expected = encode(cls.weights, cls.config, **cls.feeds)

    def check(self, model):
        actual = support.ort_run(support.ort_session(model), self.feeds)["last_hidden_state"]
        self.assertEqual(actual.shape, self.expected.shape)
        self.assertLess(np.abs(actual - self.expected).max(), MAX_DIFFERENCE)

    def test_the_kept_file(self):
        self.check(self.folder / "model.onnx")

    def test_each_opset(self):
        for opset in (13, 17):
            with self.subTest(opset=opset), tempfile.TemporaryDirectory(prefix="rlx-test-") as folder:
                path = pathlib.Path(folder) / "model.onnx"
                model = write_bert_onnx.bert_model(self.folder, opset)
                onnx.checker.check_model(model)
                path.write_bytes(model.SerializeToString(deterministic=True))
                self.check(path)

    def test_layer_norm_is_one_node_only_from_opset_17(self):
        def count(opset, op_type):
            nodes = write_bert_onnx.bert_model(self.folder, opset).graph.node
            return sum(node.op_type == op_type for node in nodes)

        norms = 1 + 2 * self.config["num_hidden_layers"]
        self.assertEqual((count(14, "LayerNormalization"), count(14, "Sqrt")), (0, norms))
        self.assertEqual((count(17, "LayerNormalization"), count(17, "Sqrt")), (norms, 0))


if __name__ == "__main__":
    unittest.main()
