"""Magika on twenty files of different kinds: scores within 1e-4 of ONNX Runtime's and the same labels."""

import bz2
import gzip
import io
import json
import lzma
import pathlib
import sqlite3
import struct
import sys
import tarfile
import tempfile
import textwrap
import unittest
import wave
import zipfile
import zlib

import numpy as np

import support

MAX_DIFFERENCE = 1e-4


def text(content):
    return textwrap.dedent(content).lstrip().encode()


def png():
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    pixels = b"".join(b"\0" + bytes(range(row, row + 96)) for row in range(32))
    header = struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")


def zip_archive():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("readme.txt", "notes/list.txt"):
            archive.writestr(zipfile.ZipInfo(name), f"contents of {name}\n" * 40)
    return buffer.getvalue()


def tar_archive():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        body = b"one line\n" * 50
        entry = tarfile.TarInfo("folder/lines.txt")
        entry.size = len(body)
        archive.addfile(entry, io.BytesIO(body))
    return buffer.getvalue()


def sound():
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes((8000 * np.sin(np.arange(4000) / 9)).astype("<i2").tobytes())
    return buffer.getvalue()


def database():
    with tempfile.TemporaryDirectory(prefix="rlx-test-") as folder:
        path = pathlib.Path(folder) / "items.db"
        connection = sqlite3.connect(path)
        connection.execute("create table items (id integer primary key, name text)")
        connection.executemany("insert into items (name) values (?)", [(f"item {n}",) for n in range(50)])
        connection.commit()
        connection.close()
        return path.read_bytes()


def pdf():
    return text(
        """
        %PDF-1.4
        1 0 obj
        << /Type /Catalog /Pages 2 0 R >>
        endobj
        2 0 obj
        << /Type /Pages /Kids [3 0 R] /Count 1 >>
        endobj
        3 0 obj
        << /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] >>
        endobj
        xref
        0 4
        trailer
        << /Size 4 /Root 1 0 R >>
        startxref
        180
        %%EOF
        """
    )


def numpy_file():
    buffer = io.BytesIO()
    np.save(buffer, np.arange(300, dtype=np.float32).reshape(20, 15))
    return buffer.getvalue()


PYTHON = """
    import sys

    def fibonacci(n):
        a, b = 0, 1
        for _ in range(n):
            a, b = b, a + b
        return a

    if __name__ == "__main__":
        print([fibonacci(n) for n in range(int(sys.argv[1]))])
"""
CPP = """
    #include <iostream>
    #include <vector>

    namespace shapes {
    template <typename T>
    class Box {
     public:
      explicit Box(T side) : side_(side) {}
      T area() const { return side_ * side_; }
     private:
      T side_;
    };
    }  // namespace shapes

    int main() {
      std::vector<shapes::Box<double>> boxes{shapes::Box<double>(2.0)};
      for (const auto& box : boxes) std::cout << box.area() << std::endl;
    }
"""
RUST = """
    use std::collections::HashMap;

    fn main() {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for word in "a b a".split_whitespace() {
            *counts.entry(word.to_string()).or_insert(0) += 1;
        }
        println!("{:?}", counts);
    }
"""
JAVASCRIPT = """
    const fs = require('fs');
    async function main() {
      const lines = fs.readFileSync('input.txt', 'utf8').split('\\n');
      lines.filter((line) => line.length > 3).forEach((line) => console.log(line));
    }
    main().catch((error) => { console.error(error); process.exit(1); });
"""
SHELL = """
    #!/bin/bash
    set -euo pipefail
    for file in "$@"; do
      if [[ -f "$file" ]]; then
        echo "$file: $(wc -l < "$file") lines"
      fi
    done
"""
HTML = """
    <!DOCTYPE html>
    <html lang="en">
    <head><meta charset="utf-8"><title>A page</title></head>
    <body><h1>Heading</h1><p>A paragraph with a <a href="https://example.org">link</a>.</p></body>
    </html>
"""
XML = """
    <?xml version="1.0" encoding="UTF-8"?>
    <catalog>
      <book id="1"><title>First</title><price currency="EUR">10.00</price></book>
      <book id="2"><title>Second</title><price currency="EUR">12.50</price></book>
    </catalog>
"""
MARKDOWN = """
    # Project

    A short introduction with *emphasis* and `code`.

    ## Usage

    - first step
    - second step, see [the guide](guide.md)

    ```
    make test
    ```
"""
SQL = """
    CREATE TABLE users (id INTEGER PRIMARY KEY, name VARCHAR(80) NOT NULL);
    INSERT INTO users (id, name) VALUES (1, 'Ada'), (2, 'Grace');
    SELECT name FROM users WHERE id > 1 ORDER BY name;
"""
MAKEFILE = """
    CC = gcc
    CFLAGS = -O2 -Wall

    all: program

    program: main.o list.o
    \t$(CC) $(CFLAGS) -o $@ $^

    %.o: %.c
    \t$(CC) $(CFLAGS) -c $<

    .PHONY: all clean
    clean:
    \trm -f program *.o
"""


def twenty_files():
    """Contents by the kind they were made as; what the model calls them is the model's own affair."""
    records = [{"id": n, "name": f"item {n}", "tags": ["a", "b"], "price": n * 1.5} for n in range(20)]
    table = "id,name,price\n" + "".join(f"{n},item {n},{n * 1.5}\n" for n in range(40))
    prose = "It was a quiet morning in the village, and nobody expected a visitor at that hour. " * 12
    noise = np.random.default_rng(3).bytes(5000)
    return {
        "python": text(PYTHON),
        "cpp": text(CPP),
        "rust": text(RUST),
        "javascript": text(JAVASCRIPT),
        "shell": text(SHELL),
        "html": text(HTML),
        "xml": text(XML),
        "markdown": text(MARKDOWN),
        "sql": text(SQL),
        "makefile": text(MAKEFILE),
        "json": json.dumps(records, indent=2).encode(),
        "csv": table.encode(),
        "prose": prose.encode(),
        "noise": noise,
        "png": png(),
        "zip": zip_archive(),
        "tar": tar_archive(),
        "gzip": gzip.compress(prose.encode(), mtime=0),
        "bzip": bz2.compress(table.encode()),
        "xz": lzma.compress(prose.encode()),
        "wav": sound(),
        "sqlite": database(),
        "pdf": pdf(),
        "npy": numpy_file(),
    }


class MagikaModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = support.model_path("magika")
        sys.path.insert(0, str(folder / "package"))
        from magika import Magika
        from magika.types import Seekable

        cls.model = folder / "model.onnx"
        config = json.loads((folder / "config.min.json").read_text())
        cls.labels = config["target_labels_space"]
        sizes = {
            name: config[name]
            for name in ("beg_size", "mid_size", "end_size", "padding_token", "block_size", "use_inputs_at_offsets")
        }

        def features(content):
            found = Magika._extract_features_from_seekable(Seekable(io.BytesIO(content)), **sizes)
            return found.beg + found.mid + found.end

        cls.files = twenty_files()
        cls.rows = np.array([features(content) for content in cls.files.values()], np.int32)
        session = support.ort_session(cls.model)
        (cls.input,) = (value.name for value in session.get_inputs())
        (cls.output,) = (value.name for value in session.get_outputs())
        cls.expected = support.ort_run(session, {cls.input: cls.rows})[cls.output]

    def label(self, scores):
        return self.labels[int(scores.argmax())]

    def test_the_files_are_of_many_kinds(self):
        found = {self.label(scores) for scores in self.expected}
        self.assertGreaterEqual(len(self.files), 20)
        self.assertGreaterEqual(len(found), 18, found)

    def test_all_files_in_one_batch(self):
        actual = support.rlx_run(self.model, {self.input: self.rows})[self.output]
        support.assert_close(self, actual, self.expected, MAX_DIFFERENCE, "scores")
        self.assertEqual([self.label(row) for row in actual], [self.label(row) for row in self.expected])

    def test_each_file_alone(self):
        for name, row, expected in zip(self.files, self.rows, self.expected):
            with self.subTest(file=name):
                actual = support.rlx_run(self.model, {self.input: row[np.newaxis]})[self.output][0]
                support.assert_close(self, actual, expected, MAX_DIFFERENCE, "scores")
                self.assertEqual(self.label(actual), self.label(expected))


if __name__ == "__main__":
    unittest.main()
