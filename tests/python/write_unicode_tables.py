"""Writes src/formats/tokenizers/unicode_tables.inc: where PyPI `tokenizers` classifies characters
otherwise than utf8proc does, found by asking both about every code point.

Needs tokenizers (0.23) and libutf8proc.so.2 (2.8): python write_unicode_tables.py
"""

import ctypes
import pathlib

from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import NFD, BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "src/formats/tokenizers/unicode_tables.inc"

utf8proc = ctypes.CDLL("libutf8proc.so.2")
utf8proc.utf8proc_category_string.restype = ctypes.c_char_p

class Property(ctypes.Structure):
    _fields_ = [("category", ctypes.c_int16), ("combining_class", ctypes.c_int16)]


utf8proc.utf8proc_get_property.restype = ctypes.POINTER(Property)


def combining_class(c):
    return utf8proc.utf8proc_get_property(c).contents.combining_class


CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def category(c):
    return utf8proc.utf8proc_category_string(c).decode()


def normalizer(**switch):
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return BertNormalizer(**(off | switch))


def ranges(points):
    out = []
    for c in points:
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def is_punctuation(c, split=BertPreTokenizer()):
    return len(split.pre_tokenize_str("a" + chr(c) + "b")) == 3


def is_removed(c, clean=normalizer(clean_text=True)):
    return clean.normalize_str("a" + chr(c) + "b") == "ab"


def strips(c, strip=normalizer(strip_accents=True)):
    return strip.normalize_str(chr(c)) == ""


def lower(c, low=normalizer(lowercase=True)):
    return low.normalize_str(chr(c))


def reorders(c, nfd=NFD()):
    """Whether a mark of class 1 moves before `c`."""
    return nfd.normalize_str("a" + chr(c) + "\u0334") == "a\u0334" + chr(c)


def word_probe():
    tokenizer = Tokenizer(WordPiece({"[UNK]": 0, "x": 1}, unk_token="[UNK]"))
    tokenizer.add_tokens([AddedToken("y", single_word=True, normalized=False)])
    found = tokenizer.token_to_id("y")
    return lambda c: found not in tokenizer.encode("y" + chr(c)).ids


def other_alphabetic(c):
    blocks = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))
    return c in (0x200C, 0x200D) or any(a <= c <= b for a, b in blocks)


def is_word(c):
    kinds = ("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "Pc")
    return category(c) in kinds or other_alphabetic(c)


def write_ranges(out, name, why, points):
    out.append(f"// {why}")
    out.append(f"constexpr Range {name}[] = {{")
    out.extend(f"    {{{a:#x}, {b:#x}}}," for a, b in ranges(points))
    out.append("};\n")


def write_case(out, steps):
    out.append("// Capitals that came later.")
    out.append("constexpr CaseRange kNewerCase[] = {")
    runs = []
    for c, step in steps:
        if runs and runs[-1][1] == c - 1 and runs[-1][2] == step:
            runs[-1][1] = c
        else:
            runs.append([c, c, step])
    out.extend(f"    {{{a:#x}, {b:#x}, {step}}}," for a, b, step in runs)
    out.append("};\n")


def main():
    out = ["// Made by tests/python/write_unicode_tables.py: do not edit.", "// clang-format off", ""]

    odd = [c for c in CODE_POINTS if c > 0x7F and (category(c)[0] == "P") != is_punctuation(c)]
    write_ranges(out, "kOtherPunctuation", "Punctuation of one side only.", odd)
    kept = [c for c in CODE_POINTS if category(c) == "Cf" and not is_removed(c)]
    write_ranges(out, "kKeptFormat", "Format characters that stay.", kept)
    odd = [c for c in CODE_POINTS if (category(c) == "Mn") != strips(c)]
    write_ranges(out, "kOtherMarks", "Nonspacing marks of one side only.", odd)
    marks = [c for c in CODE_POINTS if category(c)[0] == "M" and combining_class(c) > 1]
    decomposing = {0x340, 0x341, 0x343, 0x344}
    unordered = [c for c in marks if c not in decomposing and not reorders(c)]
    write_ranges(out, "kUnordered", "Marks that no other passes.", unordered)
    word = word_probe()
    extra = [c for c in CODE_POINTS if word(c) and not is_word(c)]
    missing = [c for c in CODE_POINTS if is_word(c) and not word(c)]
    assert not missing, ranges(missing)
    write_ranges(out, "kNewerWord", "Word characters that came later.", extra)
    steps = []
    for c in CODE_POINTS:
        wanted = lower(c)
        if len(wanted) == 1 and ord(wanted) != utf8proc.utf8proc_tolower(c):
            steps.append((c, ord(wanted) - c))
    write_case(out, steps)
    TARGET.write_text("\n".join(out[:-1]) + "\n" + out[-1].rstrip("\n") + "\n")


if __name__ == "__main__":
    main()
