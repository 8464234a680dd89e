"""tools/check_layers.py reports each kind of breach, and nothing on a tree that keeps the rules."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import support

# A tree that keeps every rule.
CLEAN = {
    "include/rlx/error.h": "#include <string>\n",
    "src/base/error.cpp": '#include "rlx/error.h"\n',
    "src/base/os_files.cpp": "const char* home() { return getenv(name); }\n",
    "src/ops/softmax.h": "",
    "src/ops/softmax.cpp": '#include "base/check.h"\nconst OpDef def = define<Softmax>({.name = "softmax"});\n',
    "src/runtime/executable.cpp": '#include "ops/all_ops.h"\n// no "softmax" here\n',
    "src/backends/cpu/kernels/softmax.cpp": '#include "backends/cpu/kernel.h"\nauto key = "softmax";\n',
    "src/apps/run.cpp": '#include "backends/all_backends.h"\n',
}


def report(changes):
    """What the checker prints about CLEAN with `changes` (path -> content) made to it."""
    with tempfile.TemporaryDirectory(prefix="rlx-test-") as folder:
        for name, content in (CLEAN | changes).items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        subprocess.run(["git", "init", "--quiet", folder], check=True)
        command = [sys.executable, support.ROOT / "tools/check_layers.py", folder]
        finished = subprocess.run(command, capture_output=True, text=True)
        assert finished.returncode == bool(finished.stderr), finished
        return finished.stderr


class Layers(unittest.TestCase):
    def test_a_clean_tree(self):
        self.assertEqual(report({}), "")

    def test_a_later_layer(self):
        self.assertIn("ir may not include", report({"src/ir/graph.cpp": '#include "compiler/pass.h"\n'}))
        self.assertIn("base may not include", report({"src/base/log.cpp": '#include "rlx/softmax.h"\n', "include/rlx/softmax.h": ""}))

    def test_another_backend(self):
        self.assertIn("backend cpu may not", report({"src/backends/cpu/a.cpp": '#include "backends/cuda/b.h"\n'}))

    def test_operator_names(self):
        for path in ("src/runtime/context.cpp", "src/backends/cpu/executor.cpp"):
            self.assertIn('names the operator "softmax"', report({path: 'if (op.name() == "softmax") return;\n'}))
            self.assertIn("names the operator Softmax", report({path: "if (node->as<Softmax>()) return;\n"}))

    def test_environment(self):
        self.assertIn("may ask the environment", report({"src/runtime/a.cpp": 'auto v = std::getenv("RLX_X");\n'}))
        self.assertIn("may ask the environment", report({"src/base/a.cpp": 'auto v = std::getenv("RLX_X");\n'}))

    def test_unknown_layer(self):
        self.assertIn("src/misc is no layer", report({"src/misc/a.cpp": "\n"}))

    def test_machine_paths(self):
        for top in ("home", "root"):
            self.assertIn("line 2 names a path", report({"docs/a.md": f"text\nsee /{top}/someone/file\n"}))
        self.assertEqual(report({"docs/a.md": "see https://example.org/home/page and src/root/x\n"}), "")


if __name__ == "__main__":
    unittest.main()
