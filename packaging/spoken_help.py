# packaging/spoken_help.py -- what the programs' own --help says: subcommands, options, words.
#
# Man pages and completions are made of it, so that they cannot say anything else. A line of help
# is two spaces, what is typed, two spaces or more, what it means; a deeper line goes on with it.
# SPDX-License-Identifier: Apache-2.0
import os
import re
import subprocess
from dataclasses import dataclass, field


@dataclass
class Option:
    names: list
    value: str  # what follows it, "" if nothing does
    about: str


@dataclass
class Command:
    name: str  # as typed: "dibs", "dibs replay"
    about: str = ""
    usage: str = ""
    options: list = field(default_factory=list)
    positionals: list = field(default_factory=list)  # (what stands there, its meaning)
    words: list = field(default_factory=list)  # that may stand in place of a positional
    subcommands: list = field(default_factory=list)
    wants_file: bool = False
    wants_pool: bool = False

    def option_names(self):
        return [name for option in self.options for name in option.names]


def entries(text):
    """(what is typed, what it means) of every line of help, with its continuation."""
    found = []
    for line in text.splitlines():
        match = re.match(r"^ {1,4}(\S(?:.*?\S)?)(?: {2,}(\S.*))?$", line)
        if match:
            found.append([match[1], match[2] or ""])
        elif found and re.match(r"^ {5,}\S", line):
            found[-1][1] = f"{found[-1][1]} {line.strip()}".strip()
        elif line.strip() == "" and found:
            found.append(["", ""])
    return [(typed, about) for typed, about in found if typed]


def without_others(typed, about):
    """What the parser says of other options, "Excludes: --x", behind the meaning, in words."""
    found = re.search(r" (Excludes|Needs): (.*)$", typed)
    if not found:
        return typed, about
    with_or = {"Excludes": "not with", "Needs": "with"}[found[1]]
    return typed[:found.start()], f"{about}; {with_or} {found[2]}"


def parse(name, text):
    command = Command(name)
    usage = re.search(r"^usage: *(.*)$", text, re.M | re.I)
    command.usage = usage[1].strip() if usage else name
    part = "Options"
    for line in text.splitlines():
        heading = re.match(r"^(\w+):$", line)
        if heading:
            part = heading[1]
        if part == "Positionals" and line.startswith(" "):
            choices = re.search(r"\{([\w,-]+)\}", line) or \
                re.search(r"\b([a-z][\w-]*(?:\|[a-z][\w-]*)+)", line) or \
                re.search(r"^  (?:KIND|WHAT)\b.*?  ((?:[a-z-]+, )*[a-z-]+ or [a-z-]+)$", line) or \
                re.search(r"^  ([a-z]+) TEXT", line)
            if choices:
                command.words += re.split(r", | or |[,|]", choices[1])
            command.wants_pool |= bool(re.search(r"^  POOL\b", line))
            command.wants_file |= bool(re.search(r"FILE", line))
    found = re.search(r"^Positionals:\n(.*?)(?:\n\n|\Z)", text, re.M | re.S)
    for typed, about in entries(found[1]) if found else []:
        command.positionals.append((re.sub(r" (TEXT|REQUIRED|\.\.\.)( .*)?$", "", typed), about))
    in_usage = re.search(r"\b([a-z][\w-]*(?:\|[a-z][\w-]*)+)", command.usage)
    if in_usage:
        command.words += [word for word in in_usage[1].split("|") if word not in command.words]
    for typed, about in entries(text):
        names = re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", re.split(r"\s(?![-,])", typed)[0])
        if typed.startswith("-") and names:
            typed, about = without_others(typed, about)
            rest = typed[typed.index(names[-1]) + len(names[-1]):]
            value = re.sub(r"\s.*", "", rest.lstrip(" =")).strip(",")
            value = re.sub(r"^\[(.*)\]$", r"\1", value)
            command.options.append(Option(names, value, about))
            command.wants_file |= value == "FILE"
    if name == "dibs" or re.search(r"^Subcommands:$", text, re.M):
        below = text.split("Subcommands:")[-1]
        command.subcommands = [(typed, about) for typed, about in entries(below)
                               if re.fullmatch(r"[a-z][\w-]*", typed)]
        if name != "dibs":
            command.words += [typed for typed, _ in command.subcommands]
    return command


def spoken(program, *words):
    ran = subprocess.run([program, *words, "--help"], capture_output=True, text=True,
                         env={**os.environ, "COLUMNS": "1000"},  # a meaning, a line
                         stdin=subprocess.DEVNULL, timeout=30)
    return ran.stdout or ran.stderr


def tool(program):
    """The command `dibs` and, by name, its subcommands."""
    top = parse("dibs", spoken(program))
    top.options = [Option(["--help"], "", "say what there is"),
                   Option(["--version"], "", "print the version")]
    below = {}
    for name, about in top.subcommands:
        below[name] = parse(f"dibs {name}", spoken(program, name))
        below[name].about = about
    return top, below


def daemon(program):
    return parse(os.path.basename(program), spoken(program))
