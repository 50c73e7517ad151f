#!/usr/bin/env python3
# tests/readme/readme.py -- does what README.md says, letter by letter, and looks whether it is so.
#
#   readme.py BUILD        speaks TAP
#
# A fence whose first line names a file in a comment is that file. A fence "console" is a session:
# lines after "$ " are typed, the others are what must be seen, "..." standing for anything. All of
# it happens in one shell, in order, in a folder that looks like the project's. A comment above a
# fence says why it is not done here:
#
#   <!-- run by FILE -->      FILE runs each of its commands
#   <!-- needs root: … -->    it is skipped; its commands must be bash
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from tap_lines import Tap  # noqa: E402

FENCE = re.compile(r"(?:^<!-- (?P<mark>[^\n]*) -->\n)?^```(?P<kind>\w*)\n(?P<body>.*?)^```$",
                   re.M | re.S)
MARK = "\x01ended with "


def steps(body):
    """(what is typed, what must be seen) of a session."""
    found = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], []])
        else:
            found[-1][1].append(line)
    return [(typed, "\n".join(seen)) for typed, seen in found]


def typed_as(command, expected):
    """What goes in the background is waited for until it speaks, if it should."""
    if not command.endswith("&"):
        return command
    if expected == "":
        return f"{command[:-1]} > /dev/null &"
    return f": > spoken; {command[:-1]} > spoken & until grep -q . spoken; do :; done; cat spoken"


def as_expected(said, expected):
    pattern = ".*".join(re.escape(part) for part in expected.split("..."))
    return expected == "" or re.fullmatch(pattern, said.strip(), re.S)


class Shell:
    """One bash for all of it."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            ["bash", "--norc"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env={**os.environ, "HOME": folder, "PYTHONDONTWRITEBYTECODE": "1"})

    def run(self, command, expected=""):
        """(exit code, output) of one command."""
        print(typed_as(command, expected), f"printf '\\n{MARK}%d\\n' $?", sep="\n",
              file=self.process.stdin, flush=True)
        lines = []
        for line in self.process.stdout:
            if line.startswith(MARK):
                return int(line[len(MARK):]), "".join(lines)
            lines.append(line)
        return -1, "".join(lines) + "the shell has ended"

    def end(self):
        self.run("kill $(jobs -p) 2>/dev/null; wait; true")
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()


def check_elsewhere(tap, mark, body):
    place = mark.removeprefix("run by ")
    text = (ROOT / place).read_text()
    for typed, _ in steps(body):
        tap.case(f"{place} runs: {typed}",
                 [] if re.search(rf"^[^#\n]*{re.escape(typed.split()[0])}\b", text, re.M)
                 else ["it does not"])


def check_here(tap, shell, body):
    for typed, expected in steps(body):
        code, said = shell.run(typed, expected)
        good = code == 0 and as_expected(said, expected)
        tap.case(typed, [] if good else [
            f"ended with {code}", *(f"expected: {line}" for line in expected.splitlines()),
            *(f"said: {line}" for line in said.splitlines())])


def main(build):
    tap = Tap()
    files, sessions = 0, 0
    with tempfile.TemporaryDirectory(prefix="dibs-readme-") as name:
        folder = pathlib.Path(name)
        for entry in ROOT.iterdir():
            if not entry.name.startswith((".", "build")):
                (folder / entry.name).symlink_to(entry)
        (folder / "build").symlink_to(build)
        shell = Shell(name)
        for fence in FENCE.finditer((ROOT / "README.md").read_text()):
            mark, kind, body = fence["mark"] or "", fence["kind"], fence["body"]
            named = re.match(r"(?://|#) (\S+)\n", body)
            if mark.startswith("run by "):
                check_elsewhere(tap, mark, body)
            elif mark.startswith("needs root"):
                script = "\n".join(typed for typed, _ in steps(body))
                parsed = subprocess.run(["bash", "-n"], input=script, text=True)
                if parsed.returncode == 0:
                    tap.skip(script.splitlines()[0], mark)
                else:
                    tap.case(script, ["is not bash"])
            elif kind == "console":
                sessions += 1
                check_here(tap, shell, body)
            elif named:
                files += 1
                (folder / named[1]).write_text(body)
            else:
                tap.case(body.splitlines()[0], ["is neither a named file nor a session"])
        tap.equal("the shell ends in order", shell.end(), 0)
    tap.case("there were files and sessions", [] if files > 2 and sessions > 2 else ["too few"])
    sys.exit(tap.end())


if __name__ == "__main__":
    main(sys.argv[1])
