"""Lines that a tokenizer has trouble with, the same for the same seed."""

import random

WORDS = """the of running unaffable tokenization Straße naïve façade café Ångström coöperate résumé Zürich
smörgåsbord İstanbul Iğdır ılık DİYARBAKIR ΑΣΣΟΣ Σίσυφος ΟΔΥΣΣΕΎΣ москва ЁЛКА Ёжик йод Київ ї 漢字 東京都 中文字符 你好世界
한국어 서울특별시 값 ひらがな カタカナ ガギグ がぎぐ ﾊﾝｶｸ שָׁלוֹם עברית العَرَبِيَّة مرحبا فارسی हिन्दी নমস্কার தமிழ் ไทย ภาษาไทย မြန်မာ ქართული ႠႡႢ Ꭰ
ἄνθρωπος ᾳ ᾼ Ǆ ǅ ǆ ŉ ﬁ ﬃ ß ẞ ſ K Å ℵ ½ ² ⁵ № ™ ① Ⅷ ⅷ 𝔘𝔫𝔦 𝒜 𐐀𐐨 𞤀𞤢 don't I'm it's we've they're can't o'clock
e-mail semi-final 3.14 1,000,000 $9.99 50% C++ x86_64 foo.bar@example.com https://example.org/a?b=c#d #hashtag @user
GPT-4 COVID-19 AT&T U.S.A. hello... wait!? (see) [1] {x} <tag> "quoted" ‘single’ “double” «guillemets» „low“ ‚comma‘ — – ‒ …
、。「」『』【】！？，：；（） ・ ～ ￥ ﹏ ٪ ؟ ، ؛ ՞ ۔ । ॥ ၊ ། ‖ ′ ″ ‽ ⁇ ⸮ ⹀ 〽 〰 ͵ · ; ʹ ´ ` ^ ~ + < = > | ± × ÷ ¬ ° § ¶ © ® € £ ¥ ₿ ₺ ¤ ¢""".split()

EMOJI = ["😀", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "❤️", "☃", "1️⃣", "🫠", "🪿", "♠︎", "⌚"]
SPACES = [" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u1680", "\u2003", "\u2009", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\x0b", "\x0c", "\x85"]
INVISIBLE = ["\u200b", "\u200c", "\u200d", "\u200e", "\u200f", "\u202a", "\u202e", "\u2060", "\u2066", "\u2069", "\ufeff", "\u00ad", "\u034f", "\u061c", "\u180e", "\u115f", "\u3164", "\U000e0041"]
CONTROLS = [chr(c) for c in (*range(0, 9), *range(0xE, 0x20), *range(0x7F, 0x85), *range(0x86, 0xA0))]
PRIVATE = ["\ue000", "\uf8ff", "\U000f0000", "\U0010fffd", "\ufffd", "\ufffe", "\U0001ffff"]
MARKS = [chr(c) for c in (*range(0x300, 0x370), 0x591, 0x5B0, 0x64B, 0x670, 0x93C, 0x94D, 0xE38, 0x1DC4, 0x1DF6, 0x20D0, 0x302A, 0x302E, 0x3099, 0x16FF0, 0x1D165, 0x1D16D, 0x1E8D0)]
SPECIAL = ["[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]", "[mask]", "[ MASK ]", "[MASK", "MASK]", "[[MASK]]", "[unused1]", "##ing", "##", "[MASK][MASK]", "x[SEP]y"]
BLOCKS = [(0x20, 0x7E), (0xA0, 0x24F), (0x250, 0x2AF), (0x370, 0x3FF), (0x400, 0x52F), (0x530, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x10A0, 0x10FF), (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x2BFF), (0x2E00, 0x2E7F), (0x2E80, 0x303F), (0x3040, 0x30FF), (0x3400, 0x3500), (0x4E00, 0x5000), (0xA640, 0xA7FF), (0xAC00, 0xAD00), (0xD7B0, 0xD7FF), (0xF900, 0xFAFF), (0xFB00, 0xFDFF), (0xFE10, 0xFE6F), (0xFF00, 0xFFEF), (0x10000, 0x10FFF), (0x11000, 0x11FFF), (0x16E00, 0x16FFF), (0x1D000, 0x1D7FF), (0x1E800, 0x1E95F), (0x1F000, 0x1FAFF), (0x20000, 0x20100), (0x2B720, 0x2B940), (0x2F800, 0x2FA1F)]


def accented(rng):
    base = rng.choice("aAeEiIıİoOuUnNcCsSxя漢가\u1112")
    return base + "".join(rng.choice(MARKS) for _ in range(rng.randrange(1, 5)))


def jamo(rng):
    parts = chr(rng.randrange(0x1100, 0x1113)) + chr(rng.randrange(0x1161, 0x1176))
    return parts + (chr(rng.randrange(0x11A8, 0x11C3)) if rng.random() < 0.5 else "")


def mixed_case(rng):
    word = rng.choice(WORDS)
    return "".join(c.upper() if rng.random() < 0.5 else c.lower() for c in word)


def long_word(rng):
    length = rng.choice([30, 99, 100, 101, 102, 150, 400])
    return "".join(rng.choice("abcdefgé") for _ in range(length))


def from_block(rng):
    first, last = rng.choice(BLOCKS)
    return "".join(chr(rng.randint(first, last)) for _ in range(rng.randrange(1, 8)))


def piece(rng):
    kinds = [
        (30, lambda: rng.choice(WORDS)),
        (6, lambda: mixed_case(rng)),
        (6, lambda: accented(rng)),
        (3, lambda: jamo(rng)),
        (5, lambda: rng.choice(EMOJI)),
        (5, lambda: rng.choice(INVISIBLE)),
        (4, lambda: rng.choice(CONTROLS)),
        (3, lambda: rng.choice(PRIVATE)),
        (6, lambda: rng.choice(SPECIAL)),
        (1, lambda: long_word(rng)),
        (8, lambda: from_block(rng)),
    ]
    return rng.choices([k[1] for k in kinds], [k[0] for k in kinds])[0]()


def line(rng):
    out = []
    for _ in range(rng.randrange(1, 14)):
        out.append(piece(rng))
        if rng.random() < 0.75:
            out.append(" " if rng.random() < 0.6 else rng.choice(SPACES))
    return "".join(out)


def lines(count, seed=20260):
    """`count` lines; the first few are edges."""
    rng = random.Random(seed)
    edges = ["", " ", "\u0301", "[CLS]", "a" * 100, "a" * 101, "\ufeff", "\x00"]
    out = edges + [line(rng) for _ in range(count - len(edges))]
    return out[:count]
