#!/usr/bin/env python3
# tests/sim/seams.py -- makes a file with seams from a real one: seams.py REAL MADE
#
# What is replaced is named below; a file in which nothing is found is an error, so that a change
# of the real one cannot silently take the seams away.
# SPDX-License-Identifier: Apache-2.0
import re
import sys

MOMENT = "::dibs::seam::moment();"
RULES = [
    # Around each store that the other side's load is ordered against.
    (re.compile(r"^( *)(\w[^;{}]*\.(?:store|fetch_add)\([^;]*memory_order_seq_cst\);)$", re.M),
     rf"\1{MOMENT}\n\1\2\n\1{MOMENT}"),
    # Before each access to a lease's word, whose two sides take turns by them alone.
    (re.compile(r"\b(at|lease_words_\[tag\])\.(word|fence)\.(load|store|fetch_or|compare_exchange_strong)\("),
     r"::dibs::seam::met(\1).\2.\3("),
    (re.compile(r"\bword\.store\(old &"), r"::dibs::seam::met(word).store(old &"),
    (re.compile(r"__builtin_ia32_pause\(\)"), "::dibs::seam::moment()"),
    (re.compile(r"__builtin_ia32_rdtsc\(\)"), "::dibs::seam::ticks()"),
    (re.compile(r"^( *)if \(__rseq_size != 0\) \{$", re.M),
     r"\1if (true) return ::dibs::seam::cpu();\n\1if (__rseq_size != 0) {"),
]


def main():
    real, made = sys.argv[1:]
    text = open(real, encoding="utf-8").read()
    seams = 0
    for pattern, replacement in RULES:
        text, count = pattern.subn(replacement, text)
        seams += count
    if seams == 0:
        sys.exit(f"{real}: has no place for a seam")
    text = '#include "tests/sim/seam.hpp"\n' + text
    open(made, "w", encoding="utf-8").write(text)


main()
