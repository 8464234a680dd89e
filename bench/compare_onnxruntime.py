#!/usr/bin/env python3
"""Times `rlx` beside ONNX Runtime on the same model and inputs, in turns, and prints the paired ratios.

usage: compare_onnxruntime.py [--threads 1,2] [--rounds N] [--model FILE] [BATCHxSEQ ...]

For each shape the outputs are compared first. Then each round times a burst of runs of one, then of the other; a ratio
below 1 means that RLX took less time. Medians and quartiles are over the rounds.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHAPES = ["1x8", "1x32", "1x128", "1x512", "32x128"]
TOLERANCE = 1e-3  # of the largest difference, relative to the largest magnitude
BURST_SECONDS = 0.4


def session_of(model, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def feeds_of(session, batch, seq):
    random = np.random.default_rng(7)
    feeds = {}
    for port in session.get_inputs():
        shape = [{"batch": batch, "seq": seq}.get(d, d) for d in port.shape]
        feeds[port.name] = random.integers(0, 1000, shape) if port.name == "input_ids" else np.ones(shape, np.int64)
    feeds.get("token_type_ids", np.zeros(1))[...] = 0
    return feeds


class Rlx:
    """The command on saved inputs."""

    def __init__(self, command, model, feeds, threads, folder):
        self.base = [str(command), "bench", str(model), "--threads", str(threads), "--json"]
        self.run = [str(command), "run", str(model), "--threads", str(threads)]
        self.inputs = []
        for name, array in feeds.items():
            file = folder / f"{name}.npy"
            np.save(file, array)
            self.inputs += ["--input", f"{name}={file}"]
        self.folder = folder / "outputs"

    def outputs(self):
        subprocess.run([*self.run, *self.inputs, "--save", str(self.folder)], check=True, stdout=subprocess.DEVNULL)
        return {file.stem: np.load(file) for file in self.folder.glob("*.npy")}

    def median_ms(self, runs):
        done = subprocess.run([*self.base, *self.inputs, "--runs", str(runs)], check=True, capture_output=True, text=True)
        return json.loads(done.stdout)["median_ms"]


def ort_median_ms(session, feeds, runs):
    for _ in range(3):
        session.run(None, feeds)
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        session.run(None, feeds)
        times.append((time.perf_counter() - start) * 1e3)
    time.sleep(0.05)  # its threads spin for a while after a run
    return statistics.median(times)


def check_outputs(session, feeds, rlx):
    found = rlx.outputs()
    for port, expected in zip(session.get_outputs(), session.run(None, feeds)):
        difference = np.abs(found[port.name] - expected).max() / np.abs(expected).max()
        if not difference <= TOLERANCE:
            raise SystemExit(f"output {port.name} differs by {difference:.3g}")


def compare(arguments, shape, threads):
    batch, seq = map(int, shape.split("x"))
    session = session_of(arguments.model, threads)
    feeds = feeds_of(session, batch, seq)
    with tempfile.TemporaryDirectory(prefix="rlx-bench-") as folder:
        rlx = Rlx(arguments.rlx, arguments.model, feeds, threads, pathlib.Path(folder))
        check_outputs(session, feeds, rlx)
        runs = max(3, int(BURST_SECONDS * 1e3 / ort_median_ms(session, feeds, 3)))
        pairs = [(rlx.median_ms(runs), ort_median_ms(session, feeds, runs)) for _ in range(arguments.rounds)]
    ratios = sorted(a / b for a, b in pairs)
    low, middle, high = (float(np.quantile(ratios, q)) for q in (0.25, 0.5, 0.75))
    ours, theirs = (statistics.median(column) for column in zip(*pairs))
    print(f"{shape:>8} {threads:>8} {ours:>10.3f} {theirs:>10.3f} {middle:>8.3f}   {low:.3f} – {high:.3f}", flush=True)
    return middle


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "models/minilm/model.onnx")
    parser.add_argument("--rlx", type=pathlib.Path, default=ROOT / "build/release/bin/rlx", help="the rlx command")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("shapes", nargs="*", default=SHAPES, metavar="BATCHxSEQ")
    arguments = parser.parse_args()
    print(f"{arguments.model.name}, f32, ONNX Runtime {onnxruntime.__version__}, {arguments.rounds} rounds")
    print(f"{'shape':>8} {'threads':>8} {'rlx ms':>10} {'ort ms':>10} {'ratio':>8}   quartiles")
    ratios = [compare(arguments, shape, int(t)) for t in arguments.threads.split(",") for shape in arguments.shapes]
    print(f"geometric mean of the ratios {statistics.geometric_mean(ratios):.3f}, largest {max(ratios):.3f}")


if __name__ == "__main__":
    main()
