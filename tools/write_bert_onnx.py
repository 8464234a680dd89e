#!/usr/bin/env python3
"""Writes the ONNX file of a BERT encoder from its Hugging Face folder (config.json, model.safetensors).

usage: write_bert_onnx.py FOLDER OUTPUT.onnx [--opset 13|14|17]

The graph is spelled as PyTorch's exporter spells it: shapes are computed in the graph, every linear layer is a MatMul by
a transposed initializer and an Add, GELU and (below opset 17) layer norm are decomposed. Same folder, same bytes.

Inputs input_ids, attention_mask, token_type_ids: int64 [batch, seq]. Output last_hidden_state: float [batch, seq, hidden].
"""

import argparse
import json
import math
import pathlib
import struct

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LOWEST_FLOAT = float(np.finfo(np.float32).min)


def read_safetensors(path):
    """Returns {name: array} of the float32 and int64 tensors of a safetensors file."""
    content = pathlib.Path(path).read_bytes()
    (header_size,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + header_size])
    header.pop("__metadata__", None)
    dtypes = {"F32": np.float32, "I64": np.int64}
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + header_size + offset for offset in entry["data_offsets"])
        tensors[name] = np.frombuffer(content[begin:end], dtypes[entry["dtype"]]).reshape(entry["shape"])
    return tensors


class GraphWriter:
    """Collects nodes and initializers; each method that adds a node returns the name of its output."""

    def __init__(self, opset):
        self.opset = opset
        self.nodes = []
        self.initializers = []
        self._taken = set()

    def _unique(self, name):
        number = 0
        candidate = name
        while candidate in self._taken:
            number += 1
            candidate = f"{name}_{number}"
        self._taken.add(candidate)
        return candidate

    def op(self, scope, op_type, *inputs, **attributes):
        name = self._unique(f"{scope}/{op_type}")
        output = f"{name}_output_0"
        self.nodes.append(helper.make_node(op_type, list(inputs), [output], name=name, **attributes))
        return output

    def constant(self, scope, value, dtype):
        tensor = numpy_helper.from_array(np.asarray(value, dtype))
        return self.op(scope, "Constant", value=tensor)

    def initializer(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name


class BertWriter:
    """Writes the encoder `config` describes; `weights` is as read_safetensors returns it."""

    def __init__(self, config, weights, opset):
        self.graph = GraphWriter(opset)
        self.config = config
        self.weights = weights
        self.heads = config["num_attention_heads"]
        self.hidden = config["hidden_size"]
        self.head_dim = self.hidden // self.heads

    def weight(self, name):
        return self.graph.initializer(name, self.weights[name])

    def int64(self, scope, value):
        return self.graph.constant(scope, value, np.int64)

    def float32(self, scope, value):
        return self.graph.constant(scope, value, np.float32)

    def extent(self, scope, x, axis):
        """The extent of `x` along `axis`, a scalar."""
        shape = self.graph.op(scope, "Shape", x)
        return self.graph.op(scope, "Gather", shape, self.int64(scope, axis), axis=0)

    def unsqueeze(self, scope, x, axis):
        return self.graph.op(scope, "Unsqueeze", x, self.int64(scope, [axis]))

    def reshape_tail(self, scope, x, like, tail):
        """Reshapes `x` to [batch of `like`, seq of `like`, *tail]."""
        extents = [self.extent(scope, like, axis) for axis in (0, 1)]
        parts = [self.unsqueeze(scope, extent, 0) for extent in extents]
        parts += [self.int64(scope, [size]) for size in tail]
        return self.graph.op(scope, "Reshape", x, self.graph.op(scope, "Concat", *parts, axis=0))

    def linear(self, module, x):
        scope = "/" + module.replace(".", "/")
        kernel = self.graph.initializer(f"onnx::MatMul_{module}", self.weights[f"{module}.weight"].T)
        product = self.graph.op(scope, "MatMul", x, kernel)
        return self.graph.op(scope, "Add", self.weight(f"{module}.bias"), product)

    def layer_norm(self, module, x):
        scope = "/" + module.replace(".", "/")
        g = self.graph
        scale, bias = self.weight(f"{module}.weight"), self.weight(f"{module}.bias")
        epsilon = self.config["layer_norm_eps"]
        if g.opset >= 17:
            return g.op(scope, "LayerNormalization", x, scale, bias, axis=-1, epsilon=epsilon)
        centred = g.op(scope, "Sub", x, g.op(scope, "ReduceMean", x, axes=[-1]))
        square = g.op(scope, "Pow", centred, self.float32(scope, 2))
        variance = g.op(scope, "ReduceMean", square, axes=[-1])
        deviation = g.op(scope, "Sqrt", g.op(scope, "Add", variance, self.float32(scope, epsilon)))
        normal = g.op(scope, "Div", centred, deviation)
        return g.op(scope, "Add", g.op(scope, "Mul", normal, scale), bias)

    def gelu(self, scope, x):
        g = self.graph
        erf = g.op(scope, "Erf", g.op(scope, "Div", x, self.float32(scope, math.sqrt(2))))
        product = g.op(scope, "Mul", x, g.op(scope, "Add", erf, self.float32(scope, 1)))
        return g.op(scope, "Mul", product, self.float32(scope, 0.5))

    def embeddings(self):
        g = self.graph
        scope = "/embeddings"
        positions = np.arange(self.config["max_position_embeddings"])[np.newaxis]
        length = self.unsqueeze(scope, self.extent(scope, "input_ids", 1), 0)
        position_ids = g.op(
            scope, "Slice", self.int64(scope, positions), self.int64(scope, [0]), length,
            self.int64(scope, [1]), self.int64(scope, [1]),
        )
        table = "embeddings.{}_embeddings.weight"
        words = g.op(scope + "/word_embeddings", "Gather", self.weight(table.format("word")), "input_ids")
        types = g.op(scope + "/token_type_embeddings", "Gather", self.weight(table.format("token_type")), "token_type_ids")
        places = g.op(scope + "/position_embeddings", "Gather", self.weight(table.format("position")), position_ids)
        total = g.op(scope, "Add", g.op(scope, "Add", words, types), places)
        return self.layer_norm("embeddings.LayerNorm", total)

    def additive_mask(self):
        """0 where attention_mask is 1, the lowest float where it is 0: [batch, 1, 1, seq]."""
        g = self.graph
        mask = self.unsqueeze("", self.unsqueeze("", "attention_mask", 1), 2)
        kept = g.op("", "Cast", mask, to=TensorProto.FLOAT)
        dropped = g.op("", "Sub", self.float32("", 1), kept)
        return g.op("", "Mul", dropped, self.float32("", LOWEST_FLOAT))

    def split_heads(self, scope, x, perm):
        rows = self.reshape_tail(scope, x, x, [self.heads, self.head_dim])
        return self.graph.op(scope, "Transpose", rows, perm=perm)

    def attention(self, module, x, mask):
        g = self.graph
        scope = "/" + module.replace(".", "/")
        query = self.linear(f"{module}.query", x)
        key = self.split_heads(scope, self.linear(f"{module}.key", x), [0, 2, 3, 1])
        value = self.split_heads(scope, self.linear(f"{module}.value", x), [0, 2, 1, 3])
        query = self.split_heads(scope, query, [0, 2, 1, 3])
        scores = g.op(scope, "MatMul", query, key)
        scores = g.op(scope, "Div", scores, self.float32(scope, math.sqrt(self.head_dim)))
        shares = g.op(scope, "Softmax", g.op(scope, "Add", scores, mask), axis=-1)
        context = g.op(scope, "Transpose", g.op(scope, "MatMul", shares, value), perm=[0, 2, 1, 3])
        return self.reshape_tail(scope, context, context, [self.hidden])

    def layer(self, module, x, mask):
        scope = "/" + module.replace(".", "/")
        context = self.attention(f"{module}.attention.self", x, mask)
        context = self.linear(f"{module}.attention.output.dense", context)
        x = self.layer_norm(f"{module}.attention.output.LayerNorm", self.graph.op(scope, "Add", context, x))
        wide = self.gelu(f"{scope}/intermediate", self.linear(f"{module}.intermediate.dense", x))
        narrow = self.linear(f"{module}.output.dense", wide)
        return self.layer_norm(f"{module}.output.LayerNorm", self.graph.op(scope, "Add", narrow, x))

    def model(self):
        x = self.embeddings()
        mask = self.additive_mask()
        for number in range(self.config["num_hidden_layers"]):
            x = self.layer(f"encoder.layer.{number}", x, mask)
        self.graph.nodes[-1].output[0] = "last_hidden_state"
        axes = ["batch", "seq"]
        names = ["input_ids", "attention_mask", "token_type_ids"]
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, axes) for name in names]
        output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*axes, self.hidden])
        graph = helper.make_graph(self.graph.nodes, "main_graph", inputs, [output], self.graph.initializers)
        opsets = [helper.make_opsetid("", self.graph.opset)]
        # IR version 8 is what exporters write at opset 17, 7 at 13 and 14.
        return helper.make_model(graph, opset_imports=opsets, ir_version=8 if self.graph.opset >= 17 else 7,
                                 producer_name="rlx write_bert_onnx")


def bert_model(folder, opset):
    """The ModelProto of the encoder in `folder`."""
    folder = pathlib.Path(folder)
    config = json.loads((folder / "config.json").read_text())
    for field, known in {"model_type": "bert", "hidden_act": "gelu"}.items():
        if config[field] != known:
            raise ValueError(f"{folder}/config.json: {field} is {config[field]!r}, expected {known!r}")
    return BertWriter(config, read_safetensors(folder / "model.safetensors"), opset).model()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--opset", type=int, choices=(13, 14, 17), default=14)
    arguments = parser.parse_args()
    model = bert_model(arguments.folder, arguments.opset)
    onnx.checker.check_model(model)
    arguments.output.write_bytes(model.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
