#!/usr/bin/env python3
# tests/packaging/manual.py -- the man pages as they are built, against what --help says.
#
#   manual.py DIBS DIBSD RUNNER PAGE...        speaks TAP
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "packaging"))
import spoken_help  # noqa: E402
from tap_lines import Tap  # noqa: E402


def shown(page):
    """The page as `man` shows it, without marks, wide enough for every line."""
    text = subprocess.run(["groff", "-man", "-Tutf8", "-P-cbou", "-rLL=1000n", page],
                          capture_output=True, text=True, check=True)
    return text.stdout.replace("‐", "-").replace("−", "-"), text.stderr.splitlines()


def section(text, heading):
    """The lines below a heading, up to the next one that is as far out."""
    found = re.search(rf"^( {{,3}}){re.escape(heading)}\n((?:\1 +.*\n|\n)*)", text, re.M)
    return found[2] if found else ""


def long_options(text):
    return set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text))


def listed(text):
    """The options that a section lists: those that begin a line."""
    return {name for line in re.findall(r"^ +(-.*)$", text, re.M)
            for name in re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", line.split("  ")[0])}


def main(dibs, dibsd, runner, *paths):
    tap = Tap()
    pages = {}
    for path in paths:
        name = pathlib.Path(path).name
        pages[name], complaints = shown(path)
        tap.case(f"{name}: groff has nothing to say", complaints)
        missing = [heading for heading in ("NAME", "DESCRIPTION", "EXAMPLE", "SEE ALSO")
                   if heading not in pages[name] and not (name == "dibs.1" and heading == "EXAMPLE")]
        tap.case(f"{name}: has its sections", missing)
        tap.case(f"{name}: no heading has marks of Markdown",
                 re.findall(r"^ {0,3}\S.*`.*$|^ {0,3}`.*$", pages[name], re.M))
        tap.case(f"{name}: nothing is left unfilled", re.findall(r"@[A-Z]+\b.*", pages[name]))
    top, below = spoken_help.tool(dibs)
    tap.case("--help lists subcommands", [] if below else ["none"])
    tap.equal("dibs.1: lists the subcommands of --help",
              re.findall(r"^       dibs (\S+)$", pages["dibs.1"].split("\n   dibs ")[0], re.M),
              list(below))
    for name, command in below.items():
        text = section(pages["dibs.1"], f"dibs {name}")
        tap.case(f"dibs {name}: has a section with an example of itself",
                 [] if re.search(rf"Example.*?\n(?:.*\n)*? +.*dibs {name}\b", text)
                 else [f"write '## dibs {name}' with an example into packaging/man/dibs.1.scd"])
        tap.equal(f"dibs {name}: lists the options of --help", listed(text),
                  set(command.option_names()))
        own = re.sub(rf" -- .*|\bdibs (?!{name}\b)[a-z]+ .*", "", text)
        tap.case(f"dibs {name}: its text names no other option",
                 sorted(long_options(own) - set(command.option_names())))
        tap.case(f"dibs {name}: its text tells what its words are", [
            typed for typed, _ in command.positionals if not re.search(rf"^ +{re.escape(typed)}$", text, re.M)])
    tap.case("dibs.1: an option's value is whole",
             [] if re.search(r"^ +-g, --group NAME:MEMBERS\[:RESOURCE=AMOUNT,\.\.\.\]$", pages["dibs.1"], re.M)
             else ["dibs app --group"])
    daemon = spoken_help.daemon(dibsd)
    tap.case("dibsd --help lists options", [] if len(daemon.options) > 3 else ["too few"])
    tap.equal("dibsd.8: lists the options of --help", listed(section(pages["dibsd.8"], "OPTIONS")),
              set(daemon.option_names()))
    tap.case("dibsd.8: its text names no other option",
             sorted(long_options(pages["dibsd.8"]) - set(daemon.option_names())))
    tap.case("dibsd.8: what excludes what is told in words", [
        line for line in pages["dibsd.8"].splitlines() if re.search("Excludes|Needs:", line)])
    tap.case("dibsd.8: --no-keeper has no value, and says what it does not go with", [
        f"{option.names} {option.value} {option.about}" for option in daemon.options
        if option.names == ["--no-keeper"] and (option.value or "not with --no-standby" not in option.about)])
    tap.equal("dibs-runner.8: lists the options of --help", listed(section(pages["dibs-runner.8"], "OPTIONS")),
              set(spoken_help.daemon(runner).option_names()))
    source = (ROOT / "broker/ctl/runner/command_file.cpp").read_text()
    read = set(re.findall(r'(?:text|texts|count|size|word|uses|pair|find|table_of_texts)[({]\s*"(\w+)"', source)) - {"min"}
    tap.case("dibs-runner.8: names every key of its file", [] if len(read) > 20 else ["too few"] +
             sorted(key for key in read if not re.search(rf"\b{key}\b", pages["dibs-runner.8"])))
    example = re.search(r"```toml\n(.*?)```", (ROOT / "docs/runner.md").read_text(), re.S)[1]
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(example)
        file.flush()
        ran = subprocess.run([runner, "--check", file.name], capture_output=True, text=True, check=False)
    tap.equal("docs/runner.md: its example is a good file", (ran.returncode, ran.stderr), (0, ""))
    keys = set(re.findall(r"^\| `(\w+)`", (ROOT / "docs/configuration.md").read_text(), re.M))
    tap.case("docs/configuration.md has keys", [] if len(keys) > 20 else ["too few"])
    tap.case("dibs.toml.5: names every key",
             sorted(key for key in keys
                    if not re.search(rf"^ +{key}\b", pages["dibs.toml.5"], re.M)))
    sys.exit(tap.end())


if __name__ == "__main__":
    main(*sys.argv[1:])
