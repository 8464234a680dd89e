"""The command line: exit codes (0 success, 1 the job failed, 2 wrong usage), where messages go, and what they say."""

import json
import pathlib
import re
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

import support

SUBCOMMANDS = ("run", "inspect", "explain", "bench", "profile", "verify", "embed")


def write_model(path, nodes, inputs, outputs, opset=17):
    """An ONNX file of `nodes`; inputs and outputs are {name: (element type, shape)}."""
    values = [[helper.make_tensor_value_info(name, *kind) for name, kind in group.items()] for group in (inputs, outputs)]
    graph = helper.make_graph(nodes, "test", *values)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    path.write_bytes(model.SerializeToString())


class CommandLine(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="rlx-test-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.model = self.folder / "add.onnx"
        float_rows = (TensorProto.FLOAT, ["batch", 4])
        node = helper.make_node("Add", ["x", "y"], ["z"], name="sum")
        write_model(self.model, [node], {"x": float_rows, "y": float_rows}, {"z": float_rows})

    def array(self, name, values, dtype=np.float32):
        path = self.folder / f"{name}.npy"
        np.save(path, np.array(values, dtype))
        return f"{name}={path}"

    def assert_fails(self, code, arguments, *patterns):
        finished = support.rlx(*arguments)
        self.assertEqual(finished.returncode, code, f"rlx {arguments}\n{finished.stdout}{finished.stderr}")
        self.assertEqual(finished.stdout, "", "messages belong on standard error")
        for pattern in patterns:
            self.assertRegex(finished.stderr, pattern)
        return finished.stderr


class Usage(CommandLine):
    def test_help_names_every_subcommand(self):
        shown = support.rlx_ok("--help")
        for name in SUBCOMMANDS:
            self.assertRegex(shown, rf"\b{name}\b")

    def test_each_subcommand_has_help(self):
        for name in SUBCOMMANDS:
            with self.subTest(subcommand=name):
                shown = support.rlx_ok(name, "--help")
                self.assertRegex(shown, r"--threads")
                self.assertRegex(shown, r"--json")

    def test_no_subcommand(self):
        self.assert_fails(2, [])

    def test_unknown_subcommand(self):
        self.assert_fails(2, ["frobnicate"], "frobnicate")

    def test_unknown_option(self):
        self.assert_fails(2, ["run", self.model, "--frobnicate"], "--frobnicate")

    def test_missing_model_argument(self):
        self.assert_fails(2, ["run"])

    def test_malformed_input_option(self):
        self.assert_fails(2, ["run", self.model, "--input", "no-equals-sign"], "no-equals-sign")

    def test_malformed_numbers(self):
        self.assert_fails(2, ["run", self.model, "--threads", "many"], "many")
        self.assert_fails(2, ["run", self.model, "--dim", "batch=several"], "several")

    def test_embed_without_text(self):
        self.assert_fails(2, ["embed", "--model", self.folder])


class Failures(CommandLine):
    def test_missing_file(self):
        self.assert_fails(1, ["run", self.folder / "absent.onnx"], r"absent\.onnx")

    def test_missing_array_file(self):
        arguments = ["run", self.model, "--input", f"x={self.folder / 'absent.npy'}", "--input", self.array("y", [[0] * 4])]
        self.assert_fails(1, arguments, r"absent\.npy")

    def test_file_that_is_no_model(self):
        path = self.folder / "text.onnx"
        path.write_text("this is not a model\n")
        self.assert_fails(1, ["run", path], r"text\.onnx")

    def test_truncated_model(self):
        content = self.model.read_bytes()
        for size in (0, 1, len(content) // 2, len(content) - 1):
            with self.subTest(size=size):
                path = self.folder / "cut.onnx"
                path.write_bytes(content[:size])
                self.assert_fails(1, ["inspect", path], r"cut\.onnx")

    def test_unknown_operators_are_listed_all_at_once(self):
        path = self.folder / "unknown.onnx"
        nodes = [
            helper.make_node("Frobnicate", ["x"], ["a"], name="first_unknown"),
            helper.make_node("Relu", ["a"], ["b"], name="known"),
            helper.make_node("Transmogrify", ["b"], ["c"], name="second_unknown"),
        ]
        kind = (TensorProto.FLOAT, [4])
        write_model(path, nodes, {"x": kind}, {"c": kind})
        message = self.assert_fails(1, ["run", path], "Frobnicate", "first_unknown", "Transmogrify", "second_unknown")
        self.assertNotIn("Relu", message)

    def test_unknown_input_name(self):
        arguments = ["run", self.model, "--input", self.array("q", [[0] * 4])]
        self.assert_fails(1, arguments, r"\bq\b", r"\bx\b")

    def test_wrong_dtype(self):
        arguments = ["run", self.model, "--input", self.array("x", [[0] * 4], np.int64), "--input", self.array("y", [[0] * 4])]
        self.assert_fails(1, arguments, r"\bx\b", "i64", "f32")

    def test_wrong_rank(self):
        arguments = ["run", self.model, "--input", self.array("x", [0] * 4), "--input", self.array("y", [[0] * 4])]
        self.assert_fails(1, arguments, r"\bx\b", r"\b1\b", r"\b2\b")

    def test_wrong_extent(self):
        arguments = ["run", self.model, "--input", self.array("x", [[0] * 7]), "--input", self.array("y", [[0] * 4])]
        self.assert_fails(1, arguments, r"\bx\b", r"\b7\b", r"\b4\b")

    def test_symbol_bound_to_two_sizes(self):
        x, y = self.array("x", np.zeros((5, 4))), self.array("y", np.zeros((3, 4)))
        self.assert_fails(1, ["run", self.model, "--input", x, "--input", y], "batch", r"\b5\b", r"\b3\b")


class Results(CommandLine):
    def test_saved_outputs(self):
        x, y = np.arange(8, dtype=np.float32).reshape(2, 4), np.full((2, 4), 0.5, np.float32)
        (name, z), = support.rlx_run(self.model, {"x": x, "y": y}).items()
        self.assertEqual(name, "z")
        np.testing.assert_array_equal(z, x + y)

    def test_save_creates_the_folder(self):
        target = self.folder / "new" / "folder"
        inputs = ["--input", self.array("x", [[1] * 4]), "--input", self.array("y", [[2] * 4])]
        support.rlx_ok("run", self.model, *inputs, "--save", target)
        np.testing.assert_array_equal(np.load(target / "z.npy"), np.full((1, 4), 3, np.float32))

    def test_random_inputs_repeat(self):
        inputs = ["--input", "x=random", "--input", "y=random:-2:3", "--dim", "batch=6"]
        first, second = (self.folder / name for name in ("first", "second"))
        for target in (first, second):
            support.rlx_ok("run", self.model, *inputs, "--save", target)
        z = np.load(first / "z.npy")
        self.assertEqual(z.shape, (6, 4))
        self.assertGreater(z.std(), 0)
        np.testing.assert_array_equal(z, np.load(second / "z.npy"))

    def test_odd_output_names_become_safe_file_names(self):
        path = self.folder / "names.onnx"
        kind = (TensorProto.FLOAT, [2])
        write_model(path, [helper.make_node("Relu", ["x"], ["../up one"])], {"x": kind}, {"../up one": kind})
        outputs = support.rlx_run(path, {"x": np.array([-1, 1], np.float32)})
        self.assertEqual(list(outputs), ["_._up_one"])

    def test_inspect_shows_inputs_and_symbols(self):
        shown = support.rlx_ok("inspect", self.model)
        for pattern in (r"\bx\b", r"\by\b", r"\bz\b", r"\bbatch\b", r"\bf32\b", r"\badd\b"):
            self.assertRegex(shown, pattern)

    def test_bench_reports_times(self):
        report = support.rlx_json("bench", self.model, "--dim", "batch=8", "--runs", "5")
        self.assertGreater(report["median_ms"], 0)

    def test_bench_lists_unbound_symbols(self):
        self.assert_fails(1, ["bench", self.model], r"\bbatch\b")

    def test_json_is_one_object(self):
        for subcommand in ("inspect", "explain", "verify"):
            with self.subTest(subcommand=subcommand):
                shown = support.rlx_ok(subcommand, self.model, "--dim", "batch=2", "--json")
                self.assertIsInstance(json.loads(shown), dict)

    def test_verify_passes(self):
        support.rlx_ok("verify", self.model, "--dim", "batch=3")
        support.rlx_ok("verify", self.model, "--dim", "batch=3", "--check-passes")


if __name__ == "__main__":
    unittest.main()
