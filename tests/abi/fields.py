#!/usr/bin/env python3
# tests/abi/fields.py -- finds every struct, field, enumerator and constant of the shared layout.
#
#   tests/abi/fields.py shm/layout.hpp shm/greeting.hpp > layout_fields_generated.h
#
# C++ cannot list a struct's fields, so this reads their names and the compiler answers where they
# lie: each line of the output is STRUCT(type), FIELD(type, field), VALUE(scope, name) or
# CONSTANT(name). Functions have no bytes; any other line that it does not understand is an error, so
# that nothing is passed over.
# SPDX-License-Identifier: Apache-2.0
import re
import sys


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def without_defaults(text):
    """A field's initializer does not lie in memory."""
    return re.sub(r"^(\s+(?!inline)[\w:<>]+ \w+(?:\[\w+\])?)\s*=\s*(?:\{\}|[\w:]+);", r"\1;", text,
                  flags=re.MULTILINE)


def tokens(text):
    """Splits the header at ';', '{' and '}', keeping the separators."""
    return [part.strip() for part in re.split(r"([;{}])", text) if part.strip()]


class Reader:
    def __init__(self, text):
        lines = without_defaults(without_comments(text)).splitlines()
        self.parts = tokens("\n".join(line for line in lines if not line.startswith("#")))
        self.place = 0
        self.out = []

    def next(self):
        self.place += 1
        return self.parts[self.place - 1]

    def expect(self, part):
        found = self.next()
        if found != part:
            raise SystemExit(f"fields.py: expected '{part}', found '{found}'")

    def file(self):
        self.namespace("", "dibs::shm")

    def namespace(self, scope, name):
        if self.next() != f"namespace {name}":
            raise SystemExit(f"fields.py: does not begin with namespace {name}")
        self.expect("{")
        while self.parts[self.place] != "}":
            self.declaration(scope)
        self.expect("}")

    def declaration(self, scope):
        part = " ".join(self.parts[self.place].split())
        if match := re.fullmatch(r"namespace (\w+)", part):
            self.namespace(match[1], match[1])
        elif match := re.fullmatch(r"struct (?:alignas\(\d+\) )?(\w+)", part):
            self.struct(match[1])
        elif match := re.fullmatch(r"enum class (\w+) : \w+", part):
            self.enumeration(match[1])
        elif match := re.fullmatch(r"inline constexpr \w+ (\w+) = .+", part):
            self.next()
            self.expect(";")
            self.out.append(f"VALUE({scope}, {match[1]})" if scope else f"CONSTANT({match[1]})")
        elif part.startswith("static_assert("):
            self.next()
            self.expect(";")
        elif re.fullmatch(r"constexpr \w+ \w+\(.*\)", part):  # arithmetic on what lies there
            self.next()
            self.expect("{")
            while self.next() != "}":
                pass
        else:
            raise SystemExit(f"fields.py: does not understand '{part}'")

    def struct(self, name):
        self.next()
        self.expect("{")
        self.out.append(f"STRUCT({name})")
        in_union = False  # its members are fields of the struct, at one place
        while (part := self.next()) != "}" or in_union:
            if part == "union":
                in_union = True
                self.expect("{")
                continue
            if part == "}":
                in_union = False
                self.expect(";")
                continue
            match = re.fullmatch(r"(?:std::atomic<\w+>|\w+)\s+(\w+)(?:\[\w+\])?", part)
            if not match:
                raise SystemExit(f"fields.py: does not understand '{part}' in {name}")
            self.out.append(f"FIELD({name}, {match[1]})")
            self.expect(";")
        self.expect(";")

    def enumeration(self, name):
        self.next()
        self.expect("{")
        for part in self.next().split(","):
            if not part.strip():
                continue
            match = re.fullmatch(r"(\w+)(\s*=\s*-?\w+)?", part.strip())
            if not match:
                raise SystemExit(f"fields.py: does not understand '{part}' in {name}")
            self.out.append(f"VALUE({name}, {match[1]})")
        self.expect("}")
        self.expect(";")


def main():
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as header:
            reader = Reader(header.read())
        reader.file()
        print("\n".join(reader.out))


if __name__ == "__main__":
    main()
