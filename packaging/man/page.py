#!/usr/bin/env python3
# packaging/man/page.py -- fills a page's marked lines from the programs and documents, as scdoc.
#
#   page.py PAGE DIBS DIBSD RUNNER ROOT
#
#   @OPTIONS dibs replay     the positionals and options that this command's --help lists
#   @SUBCOMMANDS             one line for each, as `dibs --help` has them
#   @CONFIGURATION FILE      the example, text and tables of a document in Markdown
#
# A section "## dibs NAME" of a subcommand that is not there is left out; one that is missing is
# made of --help alone, and tests/packaging says that it lacks its example.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import spoken_help  # noqa: E402


def escaped(text):
    return re.sub(r"([\\*_])", r"\\\1", text)


def prose(markdown):
    """Markdown's inline marks as scdoc's."""
    parts = re.split(r"`([^`]*)`", markdown)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)|\*{1,2}([^*]*)\*{1,2}",
                    lambda match: match[1] or match[2], part) for part in parts[::2]]
    typed = [f"*{escaped(part)}*" for part in parts[1::2]] + [""]
    return "".join(escaped(said) + key for said, key in zip(plain, typed))


def options(command):
    lines = []
    for typed, about in command.positionals:
        lines += [f"*{escaped(typed)}*", f"\t{escaped(about)}", ""]
    for option in command.options:
        names = ", ".join(f"*{escaped(name)}*" for name in option.names)
        value = f" {escaped(option.value)}" if option.value else ""
        lines += [names + value, f"\t{escaped(option.about) or 'See above.'}", ""]
    return lines or ["It has no options.", ""]


def table_row(line):
    cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
    key, default, about = (cells + ["", ""])[:3] if len(cells) > 2 else [cells[0], "", cells[-1]]
    given = f" (default {prose(default)})" if default and default != "–" else ""
    given = given.replace("(default must be there)", "(must be there)")
    return [f"{prose(key)}{given}", f"\t{prose(about) or 'See above.'}", ""]


def paragraphs(markdown):
    """Blocks of lines: a fence, a table, or a paragraph."""
    block, fenced = [], False
    for line in markdown.splitlines() + [""]:
        if line.startswith("```"):
            fenced = not fenced
            block.append(line)
            if not fenced:
                yield block
                block = []
        elif fenced or line.strip():
            block.append(line)
        elif block:
            yield block
            block = []


def configuration(markdown):
    lines = []
    for block in paragraphs(markdown):
        if block[0].startswith("```"):
            lines += ["```", *block[1:-1], "```", ""]
        elif block[0].startswith("|"):
            heading = block[0].strip("| ").split("|")[0].strip()
            if heading != "key":
                lines += [f"## {escaped(heading.replace('`', ''))}", ""]
            for row in block[2:]:
                lines += table_row(row)
        elif block[0].startswith("#"):
            title = block[0].strip("# ")
            if title != "Configuration":
                lines += [f"## {escaped(title)}", ""]
            if block[1:]:
                lines += [prose(" ".join(block[1:])), ""]
        elif re.match(r"[-*] ", block[0]):
            lines += [prose(line) if line[0] in "-*" else f"  {prose(line.strip())}"
                      for line in block] + [""]
        else:
            lines += [prose(" ".join(block)), ""]
    return lines


def sections(text):
    """The page as [heading, lines...] blocks, cut at every heading."""
    block = []
    for line in text.splitlines():
        if re.match(r"^##? ", line) and block:
            yield block
            block = []
        block.append(line)
    yield block


def fill(page, dibs, daemons, root):
    top, below = spoken_help.tool(dibs)
    commands = {command.name: command
                for command in [top, *map(spoken_help.daemon, daemons), *below.values()]}
    lines = []
    blocks = list(sections(page))
    if "@SUBCOMMANDS" in page:  # those without a section get one, before what follows the last
        written = {block[0][len("## dibs "):] for block in blocks}
        last = max(n for n, block in enumerate(blocks) if block[0].startswith("## dibs "))
        blocks[last + 1:last + 1] = [
            [f"## dibs {name}", "", f"{escaped(command.about)}.", "", f"@OPTIONS dibs {name}", ""]
            for name, command in below.items() if name not in written]
    for block in blocks:
        name = re.match(r"^## dibs (\S+)", block[0])
        if name and name[1] not in below:
            continue
        for line in block:
            mark = re.match(r"^@(\w+) ?(.*)$", line)
            if mark and mark[1] == "OPTIONS":
                usage = commands[mark[2]].usage
                lines += [f"*{escaped(usage)}*", "", *options(commands[mark[2]])]
            elif mark and mark[1] == "SUBCOMMANDS":
                for command in below.values():
                    lines += [f"*{command.name}*", f"\t{escaped(command.about)}", ""]
            elif mark and mark[1] == "CONFIGURATION":
                lines += configuration((root / mark[2]).read_text())
            else:
                lines.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


if __name__ == "__main__":
    source, dibs_program, *daemon_programs, project = sys.argv[1:]
    sys.stdout.write(fill(pathlib.Path(source).read_text(), dibs_program, daemon_programs,
                          pathlib.Path(project)))
