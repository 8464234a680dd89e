#!/usr/bin/env python3
"""usage: check_layers.py [ROOT]

Checks what the layers of src/ may see of each other (docs/architecture.md) and what no file may contain.

- A layer includes only itself and the layers before it in LAYERS; no backend includes another.
- src/runtime and src/backends name no operator, except below <backend>/kernels/.
- Only src/base/os_*.cpp asks the environment.
- No tracked file names a path of the machine it was written on.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]).resolve()
SRC = ROOT / "src"
LAYERS = ["base", "ir", "ops", "transform", "compiler", "runtime", "backends", "formats", "models", "apps"]
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
MACHINE_PATH = re.compile(r"(?<![\w.}/-])/(?:work|root|home|farm)/")


def tracked(*patterns):
    listing = ["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    lines = subprocess.run(listing, check=True, capture_output=True, text=True).stdout.splitlines()
    return [ROOT / line for line in lines if (ROOT / line).is_file()]


def layer_of(path):
    """The layer a source file belongs to; None for the folders outside src/."""
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == "src" else None


def public_layers():
    """The layer of each public header that one .cpp file of the same stem implements."""
    stems = {}
    for layer in LAYERS:
        for path in (SRC / layer).glob("*.cpp"):
            stems.setdefault(path.stem, layer)
    return {f"rlx/{path.name}": stems[path.stem] for path in (ROOT / "include/rlx").glob("*.h") if path.stem in stems}


def backend_of(include):
    match = re.match(r"backends/(\w+)/", include)
    return match and match[1]


def include_problems(path, text, layer, public):
    for include in INCLUDE.findall(text):
        seen = public.get(include) or include.split("/")[0]
        if seen in LAYERS and LAYERS.index(seen) > LAYERS.index(layer):
            yield f'{layer} may not include "{include}" of the later layer {seen}'
        own, other = backend_of(str(path.relative_to(SRC))), backend_of(include)
        if own and other and own != other:
            yield f'backend {own} may not include "{include}"'


def operator_names():
    """Struct names and operator names of every record in src/ops."""
    structs, names = set(), set()
    for path in (SRC / "ops").rglob("*.cpp") if (SRC / "ops").is_dir() else []:
        if path.stem.endswith("_test"):
            continue
        text = path.read_text()
        structs.update(re.findall(r"\bdefine<(\w+)>", text))
        names.update(re.findall(r'(?:\.name = |\bop\()"(\w+)"', text))
    return structs, names


def may_name_operators(path):
    parts = path.relative_to(SRC).parts
    if path.stem.endswith("_test") or parts[0] not in ("runtime", "backends"):
        return True
    return "kernels" in parts


def operator_problems(text, structs, names):
    code = COMMENT.sub("", text)
    for struct in re.findall(r"\b(?:as|is|holds)<(?:ops::)?(\w+)>", code):
        if struct in structs:
            yield f"names the operator {struct}"
    for literal in re.findall(r'"(\w+)"', code):
        if literal in names:
            yield f'names the operator "{literal}"'


def source_problems():
    public = public_layers()
    structs, names = operator_names()
    for path in tracked("src/*.h", "src/*.cpp"):
        layer = layer_of(path)
        if layer not in LAYERS:
            yield path, f"src/{layer} is no layer; the layers are {', '.join(LAYERS)}"
            continue
        text = path.read_text()
        if not path.stem.endswith("_test"):
            yield from ((path, problem) for problem in include_problems(path, text, layer, public))
        if not may_name_operators(path):
            yield from ((path, problem) for problem in operator_problems(text, structs, names))
        if "getenv" in text and not (layer == "base" and path.name.startswith("os_")):
            yield path, "only src/base/os_*.cpp may ask the environment"


def machine_path_problems():
    for path in tracked():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue  # a binary corpus file
        for number, line in enumerate(lines, 1):
            if MACHINE_PATH.search(line):
                yield path, f"line {number} names a path of one machine: {line.strip()[:80]}"


def main():
    problems = [*source_problems(), *machine_path_problems()]
    for path, problem in problems:
        print(f"{path.relative_to(ROOT)}: {problem}", file=sys.stderr)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
