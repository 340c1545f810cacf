"""Generates tests/golden/tokenizers/lines.json: 2,000 texts of every kind that a tokenizer can trip over.

    python3 tests/reference/mixed_text.py

Everything is drawn from one seeded stream, so the file is the same on each run. A "line" may hold line breaks.
"""

import json
import pathlib
import random

SEED = 20_250_910
COUNT = 2_000
FILE = pathlib.Path(__file__).resolve().parent.parent / "golden" / "tokenizers" / "lines.json"

# Tokens that families treat specially (some here, some elsewhere), and texts that only look like them.
MARKS = [
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<s>",
    "</s>", "<unk>", "<pad>", "[INST]", "[/INST]", "<think>", "</think>", "<tool_call>", "<0x0A>", "<0xE2>", "</", "s>",
    "<|im_end|", "|im_end|>", "< |im_end|>", "<|IM_END|>", "<||>", "<|im_start|><|im_end|>", "<s></s>", "<<s>>",
    "<Parallel>", "</Parallel>", "<Path>", "</Path>", "<Summary>", "</Summary>", "<path>", "< Path>", "</Path", "<Path/>",
]  # fmt: skip

SPACES = ["\n", "\n\n", "\r\n", "\r", "\t", "\t\t", "  ", "   ", "\u00a0", "\u3000", "\u2003", "\u200b", "\u2028"]
SPACES += ["\u0085", "\v", "\f", "\x1c", "\u180e", "\ufeff", " \n ", "\n \n", " \t ", "        ", "\u202f", "\u1680"]

CONTRACTIONS = ["I'll", "we've", "DON'T", "it's", "'s", "'S", "'t", "'re", "'ve", "'m", "'ll", "'d", "'LL", "y'all'd've"]
CONTRACTIONS += ["o'clock", "rock'n'roll", "''s", "'\u017f", "a\u2019s", "he's'", "'", "'x", "'1"]

EMOJI = ["🦀", "👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "❤️", "☺", "🏴‍☠️", "1️⃣", "🧑🏿‍🚀", "✓", "😀😀😀", "\u200d", "\ufe0f", "🏻"]

COMBINED = ["a\u0301", "e\u0308", "n\u0303o", "o\u0302\u0323", "\u1112\u1161\u11ab", "\u212b", "\u2126", "ﬁ", "ǆ"]
COMBINED += ["q\u0307\u0323", "\u0301x", "ż\u0323", "क्षि", "กำ", "தமிழ்", "ក្ខ", "\u0344", "ẛ\u0323", "Z\u0351\u036b"]

LETTERS = {
    "latin": "abcdefghijklmnopqrstuvwxyz" * 3 + "ABCDEFGHIJKLMNOPQRSTUVWXYZàéîõüçßøłžİıǅſ",
    "greek": "αβγδεζηθικλμνξοπρστυφχψωΑΩΣΆϊ",
    "cyrillic": "абвгдежзийклмнопрстуфхцчшщъыьэюяЁЖЩієґ",
    "hebrew": "אבגדהוזחטיכלמנסעפצקרשתםןץףך\u05b0\u05b7\u05bc",
    "arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهويةى\u064e\u064f\u0651\u0640",
    "devanagari": "अआइईउकखगघचजटडतदनपबमयरलवशसह\u093e\u093f\u0940\u094d",
    "hangul": "가각간갈감강개거게결고과관구국그기나내년는다대도동되들등라로를리",
    "kana": "あいうえおかきくけこさしすせそたちつてとなにのはひふまみむもやゆよらりるれろわをんアイウエオカキクケコー",
    "han": "一二三四五六七八九十人大小中国日本語文字数学問題解答平行思考路径总结证明等于因此所以",
    "thai": "กขคงจชซดตถทนบปผพมยรลวสหอ\u0e31\u0e34\u0e49",
}

DIGITS = ["0123456789"] * 6 + ["٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९", "０１２３４５６７８９", "½⅓²³₁ⅧⅣ①㊿", "𝟎𝟏𝟐"]

CONTROLS = ["\x00", "\x01", "\x07", "\x08", "\x1b[31m", "\x7f", "\x80", "\x9f", "\u202e", "\u2066", "\u200f", "\ufffd"]
CONTROLS += ["\ufffe", "\ue000", "\U000f0000", "\u0600", "\u00ad", "\u2060"]

WORDS = ["Ġ", "Ċ", "▁", "▁▁", "▁the", "Ġthe", "the", "of", "and", "path", "sum", "Result", "prove", "x", "y", "is", "so"]
WORDS += ["let", "we", "then", "answer", "number", "Parallel", "Summary", "therefore", "theorem", "iPhone", "HTTPServer"]


class Source:
    """Draws fragments of text."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.kinds = [
            self.prose, self.prose, self.code, self.latex, self.script, self.number, self.url, self.spaced, self.mark,
            self.contraction, self.emoji, self.combined, self.control, self.anywhere, self.run, self.operators,
        ]  # fmt: skip

    def pick(self, items):
        return self.random.choice(items)

    def word(self, letters, longest=9):
        return "".join(self.pick(letters) for _ in range(self.random.randint(1, longest)))

    def prose(self):
        words = [self.pick(WORDS + CONTRACTIONS) if self.random.random() < 0.6 else self.word(LETTERS["latin"])
                 for _ in range(self.random.randint(2, 12))]  # fmt: skip
        ends = [".", "!", "?", "...", ",", ";", ":", " -", "\u2014", ""]
        return " ".join(word + (self.pick(ends) if self.random.random() < 0.2 else "") for word in words)

    def code(self):
        name, other = self.word(LETTERS["latin"], 6), self.pick(WORDS)
        number, indent = self.number(), self.pick(["    ", "\t", "  "])
        return self.pick([
            f"def {name}({other}):\n{indent}return {other} ** {number}  # {name}",
            f"for (int i = 0; i < {number}; ++i) {{\n{indent}{name}[i] += {other};\n}}",
            f"let {name}: Vec<u8> = vec![{number}; {number}];",
            f'{{"{name}": [{number}, null, true], "{other}": "\\n\\t\\u00e9"}}',
            f"SELECT {name}, COUNT(*) FROM {other} WHERE {name} != '{other}';",
            f"<div class=\"{name}\">{other}&nbsp;</div><!-- {name} -->",
            f"{name}_{other}={number}; echo \"${{{name}:-{other}}}\" | sed 's/{other}//g' >>/dev/null 2>&1",
        ])  # fmt: skip

    def latex(self):
        a, b = self.pick("abcxyz"), self.number()
        return self.pick([
            rf"$\frac{{{a}}}{{{b}}} + \sqrt[3]{{{a}^2+{b}}} \leq \alpha_{{{a}}}$",
            rf"\begin{{aligned}} {a} &= {b} \\ &\implies \boxed{{{b}}} \end{{aligned}}",
            rf"\[ \sum_{{i=1}}^{{n}} {a}_i \cdot {b} = \int_0^\infty e^{{-{a}}}\,d{a} \]",
            rf"\text{{Path }}{b}\%: \left({a},\,{b}\right) \neq \varnothing",
        ])  # fmt: skip

    def script(self):
        letters = LETTERS[self.pick(list(LETTERS))]
        return self.pick(["", " ", "、", "\u3002", "-"]).join(self.word(letters) for _ in range(self.random.randint(1, 7)))

    def number(self):
        digits = self.pick(DIGITS)
        text = self.word(digits, self.pick([1, 2, 3, 4, 7, 20]))
        return self.pick(["{}", "{}", "{}", "-{}", "{}.5", "1,{}", "{}%", "0x{}", "{}e-9", "${}", "{}°"]).format(text)

    def url(self):
        host, path = self.word("abcdefghij", 8), self.word(LETTERS["latin"] + "0123456789_-", 12)
        return self.pick([
            f"https://{host}.example/{path}?q={path}&n={self.number()}#{host}", f"{host}@{path}.example", f"www.{host}.test/~{path}",
            f"C:\\{host}\\{path}.txt", f"/usr/{host}/../{path}.tar.gz", f"http://[::1]:{self.number()}/%20{path}%C3%A9",
        ])  # fmt: skip

    def spaced(self):
        return "".join(self.pick(SPACES + WORDS) for _ in range(self.random.randint(1, 8)))

    def mark(self):
        return self.pick(["", " ", "\n"]).join(self.pick(MARKS) for _ in range(self.random.randint(1, 3)))

    def contraction(self):
        return self.pick([" ", ""]).join(self.pick(CONTRACTIONS) for _ in range(self.random.randint(1, 4)))

    def emoji(self):
        return "".join(self.pick(EMOJI) for _ in range(self.random.randint(1, 4)))

    def combined(self):
        return self.pick([" ", "", "x"]).join(self.pick(COMBINED) for _ in range(self.random.randint(1, 4)))

    def control(self):
        return self.pick(["", "a", " "]).join(self.pick(CONTROLS) for _ in range(self.random.randint(1, 4)))

    def anywhere(self):
        """Any code points but surrogates."""
        ranges = [(0x20, 0x7E), (0xA0, 0x24F), (0x250, 0x1FFF), (0x2000, 0x2BFF), (0x2E80, 0xD7FF), (0xF900, 0xFFFF)]
        ranges += [(0x10000, 0x1FAFF), (0x20000, 0x3134F), (0xE0000, 0xE01EF)]
        return "".join(chr(self.random.randint(*self.pick(ranges))) for _ in range(self.random.randint(1, 10)))

    def run(self):
        return self.pick(list("xA09 .-=_#*!\n\t") + ["ab", "\r\n", "é", "数", "🦀"]) * self.pick([2, 3, 4, 7, 16, 40, 129])

    def operators(self):
        return "".join(self.pick(list("+-*/%=<>!&|^~?:;,.()[]{}@#$\\\"'` ")) for _ in range(self.random.randint(1, 12)))

    def line(self):
        parts = [self.pick(self.kinds)() for _ in range(self.pick([1, 1, 2, 3, 4]))]
        line = self.pick(["", " ", " ", "\n"]).join(parts)
        if self.random.random() < 0.15:
            line = self.pick(SPACES + [" "] * 8) + line
        if self.random.random() < 0.15:
            line += self.pick(SPACES + [" "] * 8)
        return line


def lines(count=COUNT, seed=SEED):
    """The texts: single marks, spaces and the like first, then mixtures."""
    source = Source(seed)
    single = ["", " ", *MARKS, *SPACES, *CONTRACTIONS, *EMOJI, *COMBINED, *CONTROLS]
    return single + [source.line() for _ in range(count - len(single))]


def main():
    FILE.parent.mkdir(parents=True, exist_ok=True)
    texts = ",\n".join(json.dumps(line) for line in lines())
    FILE.write_text(f"[\n{texts}\n]\n", newline="\n")


if __name__ == "__main__":
    main()
