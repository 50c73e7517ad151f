#!/usr/bin/env python3
# packaging/completions/completion.py -- a shell's completion of a program of ours, made of --help.
#
#   completion.py bash|zsh|fish DIBS DIBSD RUNNER dibs|dibsd|dibs-runner
#
# After `--` comes somebody else's command, and its own completion.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import shlex
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import spoken_help  # noqa: E402

# The pools of the broker that listens, one per line; none, if none does.
POOLS = """dibs ls pools --output jsonl 2>/dev/null | sed -n 's/.*"pool":"\\([^"]*\\)".*/\\1/p'"""
HEAD = "completion of {name}, made by packaging/completions/completion.py"

BASH = """\
# bash {head}
_{name}() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} words='{top}' files={top_files} pools=0 at
    COMPREPLY=()
    for ((at = 1; at < COMP_CWORD; at++)); do
        if [[ ${{COMP_WORDS[at]}} == -- ]]; then
            mapfile -t COMPREPLY < <(compgen -A command -A file -- "$current")
            return
        fi
    done
    if ((COMP_CWORD > 1)); then
        case ${{COMP_WORDS[1]}} in
{cases}
        esac
    fi
    if ((pools)) && [[ $current != -* ]]; then
        words+=" $({pools})"
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    if ((files && ${{#COMPREPLY[@]}} == 0)); then
        mapfile -t COMPREPLY < <(compgen -A file -- "$current")
    fi
}}
complete -F _{name} {name}
"""

ZSH = """\
#compdef {name}
# zsh {head}
_{name}() {{
    local -a typed
    local files={top_files} pools=0
    typed=({top})
    if (( ${{words[(I)--]}} && ${{words[(I)--]}} < CURRENT )); then
        shift ${{words[(I)--]}} words
        (( CURRENT = ${{#words}} ))
        _normal
        return
    fi
    if (( CURRENT > 2 )); then
        case $words[2] in
{cases}
        esac
    fi
    (( pools )) && typed+=(${{(f)"$({pools})"}})
    _describe {name} typed
    (( files )) && _files
    return 0
}}
_{name} "$@"
"""


def zsh_words(pairs):
    return " ".join(shlex.quote(word.replace(":", "\\:") + (f":{about}" if about else ""))
                    for word, about in pairs)


def pairs(command):
    return [(name, option.about) for option in command.options for name in option.names] + \
        [(word, "") for word in command.words]


def bash(name, top, below):
    def words(command):
        return " ".join(word for word, _ in pairs(command))
    cases = "\n".join(f"            {sub}) words='{words(command)}' files={int(command.wants_file)} "
                      f"pools={int(command.wants_pool)} ;;"
                      for sub, command in below.items()) or "            *) ;;"
    first = " ".join([*below, words(top)])
    return BASH.format(name=name, head=HEAD.format(name=name), top=first, cases=cases,
                       top_files=int(not below), pools=POOLS)


def zsh(name, top, below):
    cases = "\n".join(
        f"            {sub}) typed=({zsh_words(pairs(command))}) files={int(command.wants_file)} "
        f"pools={int(command.wants_pool)} ;;"
        for sub, command in below.items()) or "            *) ;;"
    first = [(sub, command.about) for sub, command in below.items()] + pairs(top)
    return ZSH.format(name=name, head=HEAD.format(name=name), top=zsh_words(first), cases=cases,
                      top_files=int(not below), pools=POOLS)


def fish_options(name, condition, command):
    lines = []
    for option in command.options:
        flags = " ".join((f"-l {word[2:]}" if word.startswith("--") else f"-s {word[1:]}")
                         for word in option.names)
        about = f" -d {fish_quoted(option.about)}" if option.about else ""
        takes = " -r" if option.value else ""
        lines.append(f"complete -c {name}{condition} {flags}{takes}{about}")
    if command.wants_pool:
        lines.append(f"complete -c {name}{condition} -f -a {fish_quoted('(' + POOLS + ')')}")
    if command.words:
        lines.append(f"complete -c {name}{condition} -f -a '{' '.join(command.words)}'")
    if not command.wants_pool and not command.words and not command.wants_file and condition:
        lines.append(f"complete -c {name}{condition} -f")
    return lines


def fish_quoted(text):
    return "'" + re.sub(r"(['\\])", r"\\\1", text) + "'"


def fish(name, top, below):
    lines = [f"# fish {HEAD.format(name=name)}"]
    if not below:
        return "\n".join(lines + fish_options(name, "", top)) + "\n"
    lines += fish_options(name, " -n __fish_use_subcommand", top)
    for sub, command in below.items():
        lines.append(f"complete -c {name} -n __fish_use_subcommand -f -a {sub} "
                     f"-d {fish_quoted(command.about)}")
        lines += fish_options(name, f" -n '__fish_seen_subcommand_from {sub}'", command)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    shell, dibs, dibsd, runner, program = sys.argv[1:]
    if program == "dibs":
        spoken = spoken_help.tool(dibs)
    else:
        spoken = spoken_help.daemon(runner if program == "dibs-runner" else dibsd), {}
    sys.stdout.write({"bash": bash, "zsh": zsh, "fish": fish}[shell](program, *spoken))
