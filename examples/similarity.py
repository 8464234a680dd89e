#!/usr/bin/env python3
"""Embeds the lines of a file with `rlx embed` and prints how similar they are: the closest pairs first, then the matrix.

usage: similarity.py --model DIR --sentences FILE [--rlx COMMAND]
"""

import argparse
import itertools
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def embed(command, model, sentences):
    """One unit vector for each line of the file `sentences`."""
    arguments = [command, "embed", "--model", model, "--file", sentences, "--json"]
    finished = subprocess.run(arguments, stdout=subprocess.PIPE, text=True)
    if finished.returncode != 0:
        sys.exit(f"similarity: {' '.join(map(str, arguments))} failed with exit code {finished.returncode}")
    return json.loads(finished.stdout)["embeddings"]


def print_closest_pairs(lines, matrix, count):
    pairs = itertools.combinations(range(len(lines)), 2)
    closest = sorted(pairs, key=lambda pair: -matrix[pair[0]][pair[1]])[:count]
    print("closest pairs")
    for a, b in closest:
        print(f"  {matrix[a][b]:5.2f}  {a + 1}  {lines[a]}\n         {b + 1}  {lines[b]}")


def print_matrix(matrix):
    print("\ncosine similarity")
    print("    " + "".join(f"{column + 1:6d}" for column in range(len(matrix))))
    for number, row in enumerate(matrix, 1):
        print(f"  {number:2d}" + "".join(f"{value:6.2f}" for value in row))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--sentences", type=pathlib.Path, required=True)
    parser.add_argument("--rlx", type=pathlib.Path, default=ROOT / "build/release/bin/rlx", help="the rlx command")
    arguments = parser.parse_args()

    lines = [line for line in arguments.sentences.read_text().splitlines() if line]
    vectors = embed(arguments.rlx, arguments.model, arguments.sentences)
    if len(vectors) != len(lines):
        sys.exit(f"similarity: {len(lines)} sentences, but {len(vectors)} embeddings")
    matrix = [[sum(x * y for x, y in zip(a, b)) for b in vectors] for a in vectors]
    print_closest_pairs(lines, matrix, len(lines) // 2)
    print_matrix(matrix)


if __name__ == "__main__":
    main()
