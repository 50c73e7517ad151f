#!/usr/bin/env python3
# tests/tidy/tidy.py -- runs the rules on the project, after proving on planted faults that they see.
#
#   tests/tidy/tidy.py ROOT        speaks TAP
# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys
import tempfile

import rules

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tap_lines import Tap  # noqa: E402

LICENCE = "SPDX-License-Identifier: Apache-2.0\n"


def source(path, body=""):
    return f"// {path} -- a file.\n// {LICENCE}{body}"


def patch(case):
    return f"# case: {case}\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"


# (rule, files of a small tree, the place that the rule must name; None: it must find nothing)
PLANTED = [
    (rules.heads, {"shm/a.hpp": source("shm/a.hpp")}, None),
    (rules.heads, {"shm/a.hpp": source("shm/b.hpp")}, "shm/a.hpp:1"),
    (rules.heads, {"shm/a.hpp": "// shm/a.hpp -- a file.\n"}, "shm/a.hpp:1"),
    (rules.heads, {"shm/a.hpp": source("shm/a.hpp", f"// {LICENCE}")}, "shm/a.hpp:1"),
    (rules.heads, {"scripts/a": f"#!/bin/bash\n# scripts/a -- a file.\n# {LICENCE}"}, None),
    (rules.heads, {"scripts/a": f"#!/bin/bash\n# {LICENCE}"}, "scripts/a:2"),
    (rules.heads, {"a/meson.build": "project('a')\n"}, "a/meson.build:1"),
    (rules.layers, {"broker/core/a.cpp": '#include "shm/a.hpp"\n', "shm/a.hpp": ""}, None),
    (rules.layers, {"broker/ctl/a.cpp": '#include "broker/core/a.hpp"\n#include "dibs/dibs.h"\n',
                    "broker/core/a.hpp": "", "clientlib/dibs/dibs.h": ""}, None),
    (rules.layers, {"shm/a.hpp": '\n#include "broker/core/a.hpp"\n', "broker/core/a.hpp": ""},
     "shm/a.hpp:2"),
    (rules.layers, {"broker/core/a.cpp": '#include "broker/b.hpp"\n', "broker/b.hpp": ""},
     "broker/core/a.cpp:1"),
    (rules.layers, {"broker/core/rules/a.cpp": '#include "broker/turn/b.hpp"\n', "broker/turn/b.hpp": ""},
     "broker/core/rules/a.cpp:1"),
    (rules.layers, {"broker/a.cpp": '#include "broker/ctl/b.hpp"\n', "broker/ctl/b.hpp": ""},
     "broker/a.cpp:1"),
    (rules.layers, {"broker/journal/a.cpp": '#include "broker/ctl/b.hpp"\n', "broker/ctl/b.hpp": ""},
     "broker/journal/a.cpp:1"),
    (rules.layers, {"broker/journal/a.cpp": '#include "broker/turn/b.hpp"\n', "broker/turn/b.hpp": ""},
     "broker/journal/a.cpp:1"),
    (rules.layers, {"broker/turn/a.cpp": '#include "demo/b.hpp"\n', "demo/b.hpp": ""},
     "broker/turn/a.cpp:1"),
    (rules.layers, {"broker/ctl/a.cpp": '#include "demo/demo.hpp"\n', "demo/demo.hpp": ""}, None),
    (rules.layers, {"demo/a.cpp": '#include "broker/turn/b.hpp"\n', "broker/turn/b.hpp": ""},
     "demo/a.cpp:1"),
    (rules.layers, {"broker/a.cpp": '#include "clientlib/b.hpp"\n', "clientlib/b.hpp": ""},
     "broker/a.cpp:1"),
    (rules.layers, {"clientlib/a.cpp": '#include "broker/b.hpp"\n', "broker/b.hpp": ""},
     "clientlib/a.cpp:1"),
    (rules.layers, {"broker/core/a.cpp": "#include <chrono>\n"}, "broker/core/a.cpp:1"),
    (rules.layers, {"broker/core/a.cpp": "#include <sys/mman.h>\n"}, "broker/core/a.cpp:1"),
    (rules.layers, {"broker/core/a.cpp": "# include <spdlog/spdlog.h>\n"}, "broker/core/a.cpp:1"),
    (rules.layers, {"broker/a.cpp": "#include <chrono>\n"}, None),
    (rules.layers, {"shm/a.cpp": '#include "b.hpp"\n', "shm/b.hpp": ""}, "shm/a.cpp:1"),
    (rules.layers, {"tests/a.cpp": '#include "b.hpp"\n', "tests/b.hpp": ""}, "tests/a.cpp:1"),
    (rules.headers, {"broker/core/a.hpp": "int a;\n" * 150 + "// b\n"}, None),
    (rules.headers, {"broker/core/a.hpp": "int a;\n" * 151}, "broker/core/a.hpp:151"),
    (rules.orders, {"broker/core/match/a.cpp": "if (by_account(pool)) f();\n"}, None),
    (rules.orders, {"broker/core/rules/a.cpp": "\nif (by_account(pool)) f();\n"}, "broker/core/rules/a.cpp:2"),
    (rules.lengths, {"shm/a.hpp": "\n" * 500}, None),
    (rules.lengths, {"shm/a.hpp": "\n" * 501}, "shm/a.hpp:501"),
    (rules.lengths, {"shm/layout.hpp": "\n" * 501}, None),
    (rules.folders, {f"broker/a/{number}.cpp": "" for number in range(40)}, None),
    (rules.folders, {f"broker/a/{number}.cpp": "" for number in range(41)}, "broker/a:41"),
    (rules.folders, {f"tests/a/{number}.cpp": "" for number in range(41)}, None),
    (rules.names, {"broker/database.cpp": ""}, None),
    (rules.names, {"broker/pool_utils.cpp": ""}, "broker/pool_utils.cpp:1"),
    (rules.names, {"broker/session_manager.hpp": ""}, "broker/session_manager.hpp:1"),
    (rules.machine_paths, {"docs/a.md": "see \nthe folder ../work/a and net/work/b\n"}, None),
    (rules.machine_paths, {"docs/a.md": "\nsee /wo" "rk/shared\n"}, "docs/a.md:2"),
    (rules.machine_paths, {"scripts/a": "cd '/ho" "me/a'\n"}, "scripts/a:1"),
    (rules.sleeps, {"broker/a.cpp": "usleep(1);\n"}, None),
    (rules.sleeps, {"tests/a.py": "await asyncio.sleep(0)\n"}, None),
    (rules.sleeps, {"tests/a.cpp": "std::this_thread::sleep_for(1ms);\n"}, "tests/a.cpp:1"),
    (rules.sleeps, {"tests/a.cpp": "\nusleep(10);\n"}, "tests/a.cpp:2"),
    (rules.references, {"docs/a.md": "`shm/` and `shm/a.hpp`, [b](b.md)\n", "docs/b.md": "",
                        "shm/a.hpp": ""}, None),
    (rules.references, {"docs/a.md": "\n`shm/a.hpp`\n"}, "docs/a.md:2"),
    (rules.references, {"a.md": "[b](docs/b.md)\n"}, "a.md:1"),
    (rules.code_map, {"ARCHITECTURE.md": "| a | `shm/a.hpp`, `b.hpp` | `A::f`, `g` |\n", "shm/a.hpp": "f()\n",
                      "shm/b.hpp": "g()\n"}, None),
    (rules.code_map, {"ARCHITECTURE.md": "\n| a | `shm/a.hpp` | `A::f` |\n", "shm/a.hpp": "ff()\n"},
     "ARCHITECTURE.md:2"),
    (rules.leftovers, {"shm/a.hpp": "int todo;\n"}, None),
    (rules.leftovers, {"shm/a.hpp": "// TO" "DO: more\n"}, "shm/a.hpp:1"),
    (rules.formatting, {"shm/a.hpp": "int a;\n"}, None),
    (rules.formatting, {"shm/a.hpp": "int a;\nint  b;\n"}, "shm/a.hpp:2"),
    (rules.patches, {"a.patch": patch("A.B"), "a": "1\n", "tests/a.cpp": "TEST_F(A, B) {\n"}, None),
    (rules.patches, {"a.patch": patch("Scenario.S0_1"), "a": "1\n", "tests/scenarios/S0.1.jsonl": ""},
     None),
    (rules.patches, {"a.patch": patch("A.B"), "a": "1\n", "tests/a.cpp": "TEST(A, C) {\n"},
     "a.patch:1"),
    (rules.patches, {"a.patch": patch("A.*"), "a": "3\n"}, "a.patch:1"),
]


def finds(rule, files, place, clang_format_file):
    """What is wrong with the rule's answer for the planted tree; empty when it is right."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / ".clang-format").write_text(clang_format_file)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        found = rule(rules.Tree(root))
    if place is None:
        return found
    if any(line.startswith(f"{place}: ") for line in found):
        return []
    return [f"did not name {place}", *found]


def main():
    root = pathlib.Path(sys.argv[1])
    tap = Tap()
    style = (root / ".clang-format").read_text()
    tree = rules.Tree(root)
    for rule in rules.RULES:
        if rule is rules.formatting and rules.formatter() is None:
            tap.skip(rule.__name__, "no clang-format of version 14 here")
            continue
        planted = [(files, place) for planted_rule, files, place in PLANTED if planted_rule is rule]
        wrong = [line for files, place in planted for line in finds(rule, files, place, style)]
        tap.case(f"{rule.__name__}: sees what is planted, and nothing else", wrong)
        tap.case(f"{rule.__name__}: {rule.__doc__}", rule(tree))
    for path, count in rules.long_sources(tree):
        tap.note(f"long: {path} has {count} lines {rules.LINES_ALLOWED.get(path, '')}")
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
