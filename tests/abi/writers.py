#!/usr/bin/env python3
# tests/abi/writers.py -- the writer column of docs/shm-layout.md against the header's comments.
#
#   tests/abi/writers.py SOURCE_ROOT
#
# The header says "Writer: ..." above a struct, or above the first of several; the document says it of
# each field. They must agree, but for the fields that whoever makes the segment writes once before
# anybody else has it (maker) and those that nobody writes (–), and no two writers may share a line.
# Each rule is first shown to see a mistake that is planted for it.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys

LINE = 64
ONCE = {"maker", "–"}
# The words of the header, in the column's words.
WORDS = {
    "the turn": {"turn"},
    "the broker's turn": {"turn"},
    "the client": {"client"},
    "its client": {"client"},
    "its client and the turn": {"client", "turn"},
    "the broker": {"broker"},
    "the tool": {"tool"},
}


def header_writers(text):
    """{struct: writers}; a struct without a comment of its own goes on with the last one."""
    writers, now = {}, None
    comment = ""
    for line in text.splitlines():
        if line.startswith("//"):
            comment += line[2:]
            continue
        said = re.search(r"[Ww]riter:\s+([a-z' ]+?)\s*[.,(]", comment)
        if said:
            now = WORDS.get(said[1], {f"'{said[1]}', which is nobody"})
        comment = ""
        struct = re.match(r"struct (?:alignas\(64\) )?(\w+) \{", line)
        if struct:
            writers[struct[1]] = now
    return writers


def document_fields(text):
    """{struct: [(offset, size, field, writers)]}"""
    structs, rows = {}, None
    for line in text.splitlines():
        heading = re.match(r"#+ (?:`(\w+)`, \d+ bytes)?", line)
        if heading:
            rows = structs.setdefault(heading[1], []) if heading[1] else None
            continue
        cells = [cell.strip() for cell in line.split("|")]
        if rows is not None and len(cells) > 4 and cells[1].isdigit() and cells[2].isdigit():
            rows.append((int(cells[1]), int(cells[2]), cells[3].strip("`"),
                         {word for word in cells[4].split(", ") if word}))
    return structs


# Words that two change, each by a read-modify-write of its own.
CHANGED_BY_BOTH = {"LeaseWord"}


def mistakes(header, document, in_lines):
    """`in_lines`: whether what two write must not share a line."""
    found = []
    for struct, allowed in header.items():
        if not allowed:
            found.append(f"{struct}: the header names no writer")
            continue
        fields = document.get(struct)
        if not fields:
            found.append(f"{struct}: the document has no fields")
            continue
        lines = {}
        for offset, size, field, writers in fields:
            if not writers:
                found.append(f"{struct}.{field}: the document names no writer")
            for writer in sorted(writers - ONCE - allowed):
                found.append(f"{struct}.{field}: the document says {writer}, "
                             f"the header {', '.join(sorted(allowed))}")
            for line in range(offset // LINE, (offset + size - 1) // LINE + 1):
                lines.setdefault(line, set()).update(writers - ONCE)
        for line, writers in sorted(lines.items()):
            if in_lines and len(writers) > 1 and struct not in CHANGED_BY_BOTH:
                found.append(f"{struct}: {' and '.join(sorted(writers))} write line {line}")
    return found


HEADER = """
// A row. Writer: the turn.
struct alignas(64) Row {
struct Next {
// UP. Writer: its client (and nobody else).
struct alignas(64) Up {
"""
DOCUMENT = """
### `Row`, 128 bytes
| 0 | 8 | `a` | maker | |
| 8 | 8 | `b` | turn | |
### `Next`, 8 bytes
| 0 | 8 | `c` | turn | |
### `Up`, 64 bytes
| 0 | 8 | `d` | client | |
| 8 | 56 | `pad` | – | |
"""
PLANTED = [
    ("a field by another", DOCUMENT.replace("| `d` | client", "| `d` | turn"), HEADER,
     ["Up.d: the document says turn, the header client"]),
    ("a field by nobody", DOCUMENT.replace("| `b` | turn", "| `b` | "), HEADER,
     ["Row.b: the document names no writer"]),
    ("a struct that is missing", DOCUMENT.replace("### `Next`", "### Next"), HEADER,
     ["Next: the document has no fields"]),
    ("a header that does not say it", DOCUMENT, HEADER.replace(" Writer: the turn.", ""),
     ["Row: the header names no writer", "Next: the header names no writer"]),
    ("two in one line", DOCUMENT.replace("| 8 | 56 | `pad` | – |", "| 8 | 56 | `e` | turn |"),
     HEADER.replace("its client (", "its client and the turn ("),
     ["Up: client and turn write line 0"]),
    ("nothing", DOCUMENT, HEADER, []),
]


def main():
    root = pathlib.Path(sys.argv[1])
    document = document_fields((root / "docs/shm-layout.md").read_text())
    results = []
    for name, text, header, expected in PLANTED:
        found = mistakes(header_writers(header), document_fields(text), True)
        results.append((f"sees {name}", [] if found == expected else [f"found {found}"]))
    for path, in_lines in (("shm/layout.hpp", True), ("shm/greeting.hpp", False)):
        header = header_writers((root / path).read_text())
        results.append((f"{path} and the document name the same writers",
                        mistakes(header, document, in_lines) or
                        ([] if len(header) > 4 else [f"only {len(header)} structs were read"])))
    print(f"1..{len(results)}")
    for number, (name, found) in enumerate(results, 1):
        print(f"{'not ok' if found else 'ok'} {number} - {name}")
        for line in found:
            print(f"# {line}")
    return 1 if any(found for _, found in results) else 0


sys.exit(main())
