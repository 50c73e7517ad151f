#!/usr/bin/env python3
# tests/broker/journal/vocabulary.py -- docs/vocabulary.md says of every statement what it is said
# with: every word is in schemas/journal.fbs, now or later as the document has it, and in the
# scenarios that the row names; the examples are played, or refused by the name of what comes later.
#
#   vocabulary.py DIBS        speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests"))
from tap_lines import Tap  # noqa: E402

# How many numbered statements each system has.
STATEMENTS = {"S0": 41, "S1": 39, "S2": 32, "S3": 32, "S4": 43}
PINNED = ("now", "partly")
STATUS = re.compile(r"now|partly|later|not offered|not the core's")
WORD = re.compile(r"(\*?)`([^`]+)`(\*?)")
INTEGERS = {"byte", "ubyte", "short", "ushort", "int", "uint", "long", "ulong"}


class Schema:
    """Tables {name: {field: (type, is a list, comes later)}} and enums {name: values}."""

    def __init__(self, text):
        text = re.sub(r"//[^\n]*", "", text)
        self.enums = {name: {value.split("=")[0].strip() for value in body.split(",")}
                      for name, body in re.findall(r"enum (\w+):\w+ \{(.*?)\}", text, re.S)}
        self.tables = {name: self.fields(body)
                       for name, body in re.findall(r"table (\w+) \{(.*?)\}", text, re.S)}

    @staticmethod
    def fields(body):
        found = {}
        for field in filter(None, map(str.strip, body.split(";"))):
            name, kind = re.match(r"(\w+):(\[?\w+\]?)", field).groups()
            found[name] = (kind.strip("[]"), kind[0] == "[", bool(re.search(r"\(.*later", field)))
        return found

    def look_up(self, root, word):
        """(fields on the way, value or None) of "a.b.c=1"; ValueError says what is wrong."""
        path, equals, value = word.partition("=")
        kind, way = root, []
        for name in path.split("."):
            if kind not in self.tables or name not in self.tables[kind]:
                raise ValueError(f"{kind} has no {name}")
            way.append(self.tables[kind][name])
            kind = way[-1][0]
        if not equals:
            return way, None
        parsed = json.loads(value)
        self.check_scalar(kind, parsed, False)
        return way, parsed

    def check_scalar(self, kind, value, slot):
        """`slot`: numbers may stand for a slot's name."""
        good = (kind in self.enums and value in self.enums[kind] or
                kind == "bool" and isinstance(value, bool) or
                kind in INTEGERS and isinstance(value, int) and not isinstance(value, bool) or
                kind == "string" and (isinstance(value, str) or slot and isinstance(value, int)))
        if not good:
            raise ValueError(f"{value!r} is no {kind}")

    def words(self, table, value, path=""):
        """(path, scalar or None, comes later) of all that an object says."""
        for name, member in value.items():
            if name not in self.tables[table]:
                raise ValueError(f"{table} has no {name}")
            kind, is_list, later = self.tables[table][name]
            where = f"{path}.{name}" if path else name
            if is_list != isinstance(member, list):
                raise ValueError(f"{where}: {member!r} where the schema has another shape")
            yield where, None, later
            for part in member if is_list else [member]:
                if kind in self.tables:
                    for inner, scalar, inner_later in self.words(kind, part, where):
                        yield inner, scalar, later or inner_later
                else:
                    self.check_scalar(kind, part, name in ("slot", "slots", "ready"))
                    yield where, part, later


class Row:
    def __init__(self, line):
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        self.line = line
        self.complete = len(cells) == 5
        self.name, self.statement, self.said, self.expected, self.played = (cells + [""] * 5)[:5]
        found = STATUS.match(self.played)
        self.status = found[0] if found else None

    def words(self):
        """(the root of its names, word, in italics) of both columns."""
        for cell, is_expected in ((self.said, False), (self.expected, True)):
            for before, word, behind in WORD.findall(cell):
                line = not is_expected or word.startswith("expect_")
                yield "Line" if line else "Decision", word, before + behind

    def paths(self):
        return [word for _, word, _ in WORD.findall(self.played) if "/" in word]

    def scenarios(self):
        named = [word for _, word, _ in WORD.findall(self.played) if "/" not in word]
        return named if self.status in PINNED else []


class Document:
    def __init__(self, text):
        self.text = text
        self.rows = [Row(line) for line in text.splitlines() if re.match(r"\| S\d", line)]
        self.headings = {name: int(count) for name, count
                         in re.findall(r"^## (S\d): [\w ]+, (\d+) statements$", text, re.M)}
        self.examples = [body.splitlines()
                         for body in re.findall(r"^```jsonl\n(.*?)^```$", text, re.M | re.S)]
        values = re.search(r"^Values that come later: (.*?)\n\n", text, re.M | re.S)
        self.later_values = {word for _, word, _ in WORD.findall(values[1] if values else "")}


def numbers(document, _):
    """every statement has exactly one row, in order"""
    wanted = [f"{system}.{number}" for system, count in STATEMENTS.items()
              for number in range(1, count + 1)]
    found = [row.name for row in document.rows]
    wrong = [f"{name} has {found.count(name)} rows" for name in wanted if found.count(name) != 1]
    wrong += [f"{name} is no statement" for name in found if name not in wanted]
    if not wrong and found != wanted:
        wrong.append("the rows are not in order")
    if document.headings != STATEMENTS:
        wrong.append(f"the headings count {document.headings}")
    return wrong


def words(document, schema):
    """every word is in the schema, in italics exactly if it comes later"""
    wrong = []
    for row in document.rows:
        for root, word, stars in row.words():
            try:
                way, value = schema.look_up(root, word)
            except ValueError as error:
                wrong.append(f"{row.name}: `{word}`: {error}")
                continue
            later = any(field[2] for field in way) or \
                value is not None and word in document.later_values
            if stars not in ("", "**") or later != (stars == "**"):
                wrong.append(f"{row.name}: `{word}` comes {'later' if later else 'now'}")
    for word in document.later_values:
        try:
            if any(field[2] for field in schema.look_up("Line", word)[0]):
                wrong.append(f"the whole field of {word} comes later")
        except ValueError as error:
            wrong.append(f"values that come later: `{word}`: {error}")
    return wrong or ([] if document.later_values else ["no value is said to come later"])


def played(document, _):
    """a row says what its words say: now, partly, later, not offered, or whose it is"""
    wrong = []
    for row in document.rows:
        later = {stars == "**" for _, _, stars in row.words()}
        fits = {"now": later == {False}, "partly": later == {False, True},
                "later": True in later, "not offered": False not in later,
                "not the core's": not later}
        if not row.complete or not row.statement or not fits.get(row.status, False):
            wrong.append(f"{row.name}: {row.played!r} does not fit its words")
        if row.status in PINNED and not row.scenarios():
            wrong.append(f"{row.name}: names no scenario")
    return wrong


def scenario_words(schema, name):
    """(root, path, value) of all that a scenario says."""
    found = set()
    path = ROOT / "tests/scenarios" / f"{name}.jsonl"
    for line in path.read_text().splitlines():
        if not line.startswith("{"):
            continue
        value = json.loads(line)
        decided = "expect" in value
        for word, scalar, _ in schema.words("Decision" if decided else "Line",
                                            value["expect"] if decided else value):
            found.add(("Decision" if decided else "Line", word, None))
            found.add(("Decision" if decided else "Line", word, scalar))
    return found


def scenarios(document, schema):
    """the scenarios and folders that a row names are there, and say its words"""
    wrong = []
    for row in document.rows:
        said = set()
        for name in row.paths():
            if not (ROOT / name).exists():
                wrong.append(f"{row.name}: there is no {name}")
        for name in row.scenarios():
            if (ROOT / "tests/scenarios" / f"{name}.jsonl").exists():
                said |= scenario_words(schema, name)
            else:
                wrong.append(f"{row.name}: there is no scenario {name}")
        if row.status not in PINNED:
            continue
        for root, word, stars in row.words():
            path, equals, value = word.partition("=")
            if not stars and (root, path, json.loads(value) if equals else None) not in said:
                wrong.append(f"{row.name}: none of its scenarios says {word}")
    return wrong


def examples(document, schema):
    """the examples say what the schema has"""
    wrong = []
    for example in document.examples:
        for line in example:
            try:
                list(schema.words("Line", json.loads(line)))
            except ValueError as error:
                wrong.append(f"{line}: {error}")
    return wrong or ([] if len(document.examples) > len(STATEMENTS) else ["there are too few"])


def play(tap, program, document, schema):
    for example in document.examples:
        run = subprocess.run([program, "replay", "--check", "-"], input="\n".join(example) + "\n",
                             capture_output=True, text=True, check=False)
        late = [(number, {word for word, _, later in schema.words("Line", json.loads(line))
                          if later}) for number, line in enumerate(example, 1)]
        late = [(number, found) for number, found in late if found]
        last = (run.stderr.strip().splitlines() or [""])[-1]
        name = f"{'is refused by name' if late else 'holds'}: {example[0]}"
        if not late:
            tap.case(name, [] if run.returncode == 0 else [last, *run.stderr.splitlines()])
            continue
        number, found = late[0]
        said = re.fullmatch(r'[^:]+:(\d+): "([\w.]+)" is not supported by this version', last)
        tap.case(name, [] if run.returncode == 1 and said and int(said[1]) == number and
                 said[2] in found else [f"expected: line {number}, one of {sorted(found)}",
                                        f"said: {last}"])


# (what finds it, a text of the document, what a mistake would make of it)
PLANTED = [
    (numbers, "| S3.7 |", "| S3.6 |"),
    (numbers, "| S4.43 |", "| S4.44 |"),
    (numbers, "32 statements", "33 statements"),
    (words, "`claim.timeout_ns`", "`claim.timeout`"),
    (words, "*`import.snapshot`*", "`import.snapshot`"),
    (words, "`pool.backlog_max`", "*`pool.backlog_max`*"),
    (words, '`end.reason="backlog_full"`', '`end.reason="backlog"`'),
    (words, '`provisioned.answer="quota"`', '`provisioned.answer="quotas"`'),
    (words, "`grant.claim`", "`expect_grant.claim`"),
    (played, "| now: `S0.13` |", "| later |"),
    (played, "| now: `S0.13` |", "| now |"),
    (played, "| partly: `S3.7`", "| now: `S3.7`"),
    (played, "| – | – |", "| `claim` | – |"),
    (played, "| not offered: ", "| now: `S0.13` "),
    (scenarios, "| now: `S0.13` |", "| now: `S0.0` |"),
    (scenarios, "| now: `S0.13` |", "| now: `S0.5` |"),
    (scenarios, "`tests/shm/`", "`tests/shn/`"),
    (examples, '"try_again":true', '"try_again":1'),
    (examples, '"workers_max":4', '"workers_most":4'),
]


def main(program):
    tap = Tap()
    schema = Schema((ROOT / "schemas/journal.fbs").read_text())
    text = (ROOT / "docs/vocabulary.md").read_text()
    document = Document(text)
    head, mark, rest = text.partition("\n## S0")
    for check in (numbers, words, played, scenarios, examples):
        for right, wrong in ((right, wrong) for finds, right, wrong in PLANTED if finds is check):
            planted = Document(head + mark + rest.replace(right, wrong, 1))
            tap.case(f"{check.__name__}: sees {wrong} for {right}",
                     [] if right in rest and check(planted, schema) else ["it does not"])
        tap.case(f"{check.__name__}: {check.__doc__}", check(document, schema))
    play(tap, program, document, schema)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
