"""Writes the small ONNX models in tests/corpora/onnx: seeds of the fuzzer, one for each group of operators.

usage: write_onnx_samples.py DIR
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(1)
FLOAT = TensorProto.FLOAT


def weight(name, *shape):
    return numpy_helper.from_array(RNG.standard_normal(shape).astype(np.float32), name)


def ints(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def value(name, *shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, initializers=(), opset=17, functions=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    imports = [helper.make_opsetid("", opset)]
    if functions:
        imports.append(helper.make_opsetid("local", 1))
    made = helper.make_model(graph, opset_imports=imports, functions=list(functions), producer_name="rlx")
    made.ir_version = 8
    return made


node = helper.make_node


def recurrent(kind, gates, direction, **attributes):
    hidden, width = 3, 2
    directions = 2 if direction == "bidirectional" else 1
    return model(
        [node(kind, ["x", "w", "r", "b"], ["y", "h"], hidden_size=hidden, direction=direction, **attributes)],
        [value("x", "t", "n", width)],
        [value("y", "t", directions, "n", hidden), value("h", directions, "n", hidden)],
        [
            weight("w", directions, gates * hidden, width),
            weight("r", directions, gates * hidden, hidden),
            weight("b", directions, 2 * gates * hidden),
        ],
    )


def convolution():
    return model(
        [
            node("Conv", ["x", "w", "b"], ["c"], strides=[2, 1], pads=[1, 0, 1, 2], group=2, dilations=[1, 2]),
            node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
            node("AveragePool", ["p"], ["a"], kernel_shape=[2, 2], auto_pad="SAME_UPPER", count_include_pad=1),
            node("GlobalAveragePool", ["a"], ["g"]),
            node("Flatten", ["g"], ["f"]),
            node("Gemm", ["f", "m", "d"], ["y"], transB=1, alpha=0.5, beta=2.0),
        ],
        [value("x", "n", 4, 9, 8)],
        [value("y", "n", 3)],
        [weight("w", 6, 2, 3, 2), weight("b", 6), weight("m", 3, 6), weight("d", 3)],
    )


def norms():
    return model(
        [
            node("LayerNormalization", ["x", "s", "b"], ["l"], axis=-1),
            node("InstanceNormalization", ["l", "si", "bi"], ["i"]),
            node("BatchNormalization", ["i", "si", "bi", "si", "v"], ["n"]),
            node("Softmax", ["n"], ["p"], axis=1),
            node("ReduceL2", ["p"], ["r"], axes=[2], keepdims=0),
            node("LogSoftmax", ["r"], ["y"]),
        ],
        [value("x", "n", 3, 5)],
        [value("y", "n", 3)],
        [weight("s", 5), weight("b", 5), weight("si", 3), weight("bi", 3), numpy_helper.from_array(np.ones(3, np.float32), "v")],
    )


def movement():
    return model(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "zero"], ["n"]),
            node("Concat", ["n", "rest"], ["to"], axis=0),
            node("Reshape", ["x", "to"], ["r"]),
            node("Slice", ["r", "starts", "ends", "axes", "steps"], ["c"]),
            node("Pad", ["c", "pads"], ["p"], mode="reflect"),
            node("Transpose", ["p"], ["t"], perm=[0, 2, 1]),
            node("Split", ["t", "sizes"], ["a", "b"], axis=1),
            node("Tile", ["a", "repeats"], ["d"]),
            node("Trilu", ["d"], ["e"], upper=0),
            node("CumSum", ["e", "last"], ["f"], reverse=1, exclusive=1),
            node("TopK", ["f", "two"], ["y", "i"], axis=-1),
        ],
        [value("x", "n", 12)],
        [value("y", "n", None, None), value("i", "n", None, None, dtype=TensorProto.INT64)],
        [
            ints("zero", 0), ints("rest", -1, 4), ints("starts", -1), ints("ends", -(2**62)), ints("axes", 2),
            ints("steps", -1), ints("pads", 0, 1, 1, 0, 0, 2), ints("sizes", 3, 4), ints("repeats", 1, 2, 1),
            numpy_helper.from_array(np.array(2, np.int64), "last"), ints("two", 2),
        ],
    )


def control():
    squeeze = helper.make_graph([node("Squeeze", ["x", "one"], ["a"])], "then", [], [value("a", None)])
    keep = helper.make_graph([node("Identity", ["x"], ["b"])], "else", [], [value("b", None, None)])
    body = helper.make_graph(
        [node("Add", ["v", "v"], ["next"]), node("Identity", ["go"], ["on"]), node("Identity", ["next"], ["seen"])],
        "body",
        [value("i", dtype=TensorProto.INT64), value("go", dtype=TensorProto.BOOL), value("v")],
        [value("on", dtype=TensorProto.BOOL), value("next"), value("seen")],
    )
    return model(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "one"], ["n"]),
            node("Equal", ["n", "one"], ["p"]),
            node("If", ["p"], ["q"], then_branch=squeeze, else_branch=keep),
            node("ReduceSum", ["q"], ["t"], keepdims=0),
            node("Loop", ["three", "", "t"], ["last", "y"], body=body),
        ],
        [value("x", "b", "n")],
        [value("y", 3)],
        [ints("one", 1), numpy_helper.from_array(np.array(3, np.int64), "three")],
    )


def function():
    f = helper.make_function(
        "local", "Twice", ["a"], ["c"],
        [node("Mul", ["a", "a"], ["b"]), node("Add", ["b", "a"], ["c"])],
        [helper.make_opsetid("", 17)],
    )
    return model(
        [node("Twice", ["x"], ["t"], domain="local"), node("Twice", ["t"], ["y"], domain="local")],
        [value("x", "n")], [value("y", "n")], functions=[f],
    )


def write(folder):
    models = {
        "lstm": recurrent("LSTM", 4, "bidirectional"),
        "gru": recurrent("GRU", 3, "reverse"),
        "gru_reset_after": recurrent("GRU", 3, "bidirectional", linear_before_reset=1),
        "rnn": recurrent("RNN", 1, "forward", activations=["Relu"]),
        "convolution": convolution(),
        "norms": norms(),
        "movement": movement(),
        "control": control(),
        "function": function(),
    }
    for name, made in models.items():
        onnx.checker.check_model(made)
        onnx.save(made, folder / f"{name}.onnx")


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))
