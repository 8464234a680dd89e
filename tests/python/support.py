"""What the end-to-end tests share: where things are, how to call `rlx`, how to compare arrays.

Nothing here skips: a missing model file or command is an error that says which make target provides it.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "models"
sys.path.insert(0, str(ROOT / "tools"))


def model_path(relative):
    path = MODELS / relative
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; `make setup` fetches it")
    return path


def rlx_command():
    path = pathlib.Path(os.environ.get("RLX_COMMAND", ROOT / "build/release/bin/rlx"))
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; `make build` builds it")
    return path


def rlx(*arguments):
    """Runs the command without a terminal; returns the finished process with text output."""
    command = [str(rlx_command()), *map(str, arguments)]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)


def rlx_ok(*arguments):
    """As rlx(), for a call that must succeed; returns its standard output."""
    finished = rlx(*arguments)
    if finished.returncode != 0:
        raise AssertionError(f"rlx {' '.join(map(str, arguments))}: exit code {finished.returncode}\n{finished.stderr}")
    return finished.stdout


def rlx_json(*arguments):
    return json.loads(rlx_ok(*arguments, "--json"))


def rlx_run(model, feeds, *options):
    """Runs `model` on {input name: array}; returns {output name: array}."""
    with tempfile.TemporaryDirectory(prefix="rlx-test-") as folder:
        folder = pathlib.Path(folder)
        inputs = []
        for number, (name, array) in enumerate(feeds.items()):
            file = folder / f"input{number}.npy"
            np.save(file, array)
            inputs += ["--input", f"{name}={file}"]
        outputs = folder / "outputs"
        rlx_ok("run", model, *inputs, "--save", outputs, *options)
        return {file.stem: np.load(file) for file in outputs.glob("*.npy")}


def ort_session(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only: warnings about the model's own initializers say nothing about us
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def ort_run(session, feeds):
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds)))


def assert_close(test, actual, expected, tolerance, what):
    """Same dtype and shape, NaN only where expected has it, and no element further away than `tolerance`."""
    test.assertEqual(actual.dtype, expected.dtype, what)
    test.assertEqual(actual.shape, expected.shape, what)
    test.assertTrue(np.array_equal(np.isnan(actual), np.isnan(expected)), f"{what}: NaN in different places")
    distance = np.nanmax(np.abs(actual.astype(np.float64) - expected.astype(np.float64)), initial=0)
    test.assertLessEqual(distance, tolerance, what)
