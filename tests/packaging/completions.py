#!/usr/bin/env python3
# tests/packaging/completions.py -- what each shell completes, against what --help lists.
#
#   completions.py DIBS DIBSD RUNNER BASH-DIBS BASH-DIBSD BASH-RUNNER ZSH-DIBS ... FISH-RUNNER        speaks TAP
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "packaging"))
import spoken_help  # noqa: E402
from tap_lines import Tap  # noqa: E402

# Each asks a shell what it would complete behind some words, one per line.
BASH = """
source "$1"; program=$2; shift 2
COMP_WORDS=("$program" "$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
"_$program" "$program"; printf '%s\\n' "${COMPREPLY[@]}"
"""
ZSH = """
file=$1; program=$2; shift 2
_describe() { local word; for word in ${(P)2}; do print -r -- ${${word//\\\\\\\\:/}%%:*}; done }
_files() { }
_normal() { print normal }
words=($program "$@"); CURRENT=${#words}
source $file
"""
FISH = """
source $argv[1]; complete -C (string join ' ' -- $argv[2..-1])
"""


def completed(shell, script, file, program, *words):
    command = {"bash": ["bash", "--norc", "-c", script, "bash"],
               "zsh": ["zsh", "-f", "-c", script, "zsh"],
               "fish": ["fish", "--no-config", "-c", script]}[shell]
    ran = subprocess.run([*command, file, program, *words], capture_output=True, text=True,
                         timeout=20)
    if ran.stderr:
        return {f"standard error: {ran.stderr}"}
    return {line.split("\t")[0] for line in ran.stdout.splitlines() if line}


def check(tap, shell, script, files, top, below, daemons):
    def ask(program, *words):
        return completed(shell, script, files[program], program, *words)

    if shell != "fish":  # which would show files beside them
        tap.case(f"{shell}: dibs: nothing but words",
                 sorted(ask("dibs", "") - set(below) - {"--help", "--version"}))
    tap.case(f"{shell}: dibs: every subcommand", sorted(set(below) - ask("dibs", "")))
    for name, command in below.items():
        wanted = {option for option in command.option_names() if option.startswith("--")}
        found = {word for word in ask("dibs", name, "--") if word.startswith("--")}
        tap.equal(f"{shell}: dibs {name}: the long options", found, wanted)
        if command.words:
            tap.case(f"{shell}: dibs {name}: the words",
                     sorted(set(command.words) - ask("dibs", name, "")))
        if command.wants_pool:
            tap.case(f"{shell}: dibs {name}: the broker's pools",
                     sorted({"gpu", "web"} - ask("dibs", name, "")))
    for name, daemon in daemons.items():
        wanted = {option for option in daemon.option_names() if option.startswith("--")}
        tap.equal(f"{shell}: {name}: the long options",
                  {word for word in ask(name, "--") if word.startswith("--")}, wanted)


@contextlib.contextmanager
def broker(dibs, dibsd):
    """Two pools, and the tool that was built as `dibs`."""
    with tempfile.TemporaryDirectory(prefix="dibs-completions-") as folder:
        config = pathlib.Path(folder) / "dibsd.toml"
        config.write_text('log_level = "warning"\n' + "".join(
            f'[[pool]]\nname = "{name}"\nkind = "worker"\n' for name in ("gpu", "web")))
        (pathlib.Path(folder) / "dibs").symlink_to(pathlib.Path(dibs).resolve())
        os.environ["DIBS_SOCKET"] = f"{folder}/dibs.sock"
        os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
        process = subprocess.Popen([dibsd, "--config", config, "--no-keeper"], text=True,
                                   stdout=subprocess.PIPE)
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()
            process.communicate()


def main(dibs, dibsd, runner, *files):
    with broker(dibs, dibsd):
        ask_all(dibs, {"dibsd": dibsd, "dibs-runner": runner}, files)


def ask_all(dibs, daemons, files):
    tap = Tap()
    top, below = spoken_help.tool(dibs)
    daemons = {name: spoken_help.daemon(program) for name, program in daemons.items()}
    words = {name for name, command in below.items() if command.words}
    tap.case("--help names pools and words", [] if {"ls", "config"} <= words and
             below["exec"].wants_pool else [f"words: {words}"])
    for number, (shell, script) in enumerate((("bash", BASH), ("zsh", ZSH), ("fish", FISH))):
        if shutil.which(shell) is None:
            tap.skip(shell, f"{shell} is not installed")
            continue
        own = dict(zip(("dibs", *daemons), files[3 * number:3 * number + 3]))
        check(tap, shell, script, own, top, below, daemons)
    sys.exit(tap.end())


if __name__ == "__main__":
    main(*sys.argv[1:])
