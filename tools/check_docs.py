#!/usr/bin/env python3
"""Checks that every relative link of every tracked Markdown page leads to a file, and its fragment to a heading."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def anchors(page):
    headings = re.findall(r"^#+ +(.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page):
    for link in LINK.findall(CODE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, fragment = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            yield f"{link}: no such file"
        elif fragment and fragment not in anchors(target):
            yield f"{link}: no such heading"


def main():
    listing = ["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    pages = [ROOT / line for line in subprocess.run(listing, check=True, capture_output=True, text=True).stdout.split("\n") if line]
    problems = [f"{page.relative_to(ROOT)}: {problem}" for page in pages if page.exists() for problem in broken_links(page)]
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
