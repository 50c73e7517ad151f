#!/usr/bin/env python3
# tests/clientlib/library_shape.py -- what libdibs.so needs and shows: the C library only, and
# nothing but dibs_*.
#
#   library_shape.py LIBRARY HEADER        speaks TAP
# SPDX-License-Identifier: Apache-2.0
import re
import subprocess
import sys


def lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


CODES = re.compile(r"DIBS_E[A-Z]+|DIBS_ALREADY_ENDED|Codes as of|a code to return")


def silent_places(header):
    """Functions whose codes neither their comment nor their section's head lists, and sections with
    functions whose head names no thread."""
    codeless, threadless = set(), set()
    with open(header, encoding="utf-8") as text:
        sections = re.split(r"^// ---- ", text.read(), flags=re.M)[1:]
    for section in sections:
        head = re.match(r".*\n(?://.*\n)*", section)[0]
        functions = re.findall(r"((?:^//.*\n)*)^DIBS_API .*?\b(dibs_\w+)\(", section, re.M)
        if functions and not re.search(r"\b[Tt]hreads?\b", head):
            threadless.add(head.splitlines()[0])
        codeless |= {name for comment, name in functions
                     if not CODES.search(comment) and not CODES.search(head)
                     and not name.endswith("_name")}
    return codeless, threadless


def misruled_threads(header):
    """Functions that any thread may call, by their own words or because nothing is theirs alone, and
    that the head's rule does not name; and those that it names without cause."""
    with open(header, encoding="utf-8") as text:
        whole = text.read()
    rule = re.search(r"^// Threads\.(?:.*\n// )*.*\n", whole, re.M)[0]
    named = set(re.findall(r"\bdibs_\w+", rule))
    functions = re.findall(r"((?:^//.*\n)*)^DIBS_API .*?\b(dibs_\w+)\(\s*([^,)]*)", whole, re.M)
    free = {name for comment, name, first in functions if not name.endswith("_name")
            and (re.search(r"\bAny\s+(//\s+)?thread", comment)
                 or not re.search(r"dibs_(session|events)\*", first))}
    return free ^ named


def main(library, header):
    dynamic = "\n".join(lines("readelf", "-d", library))
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    soname = re.findall(r"\(SONAME\).*\[(.*)\]", dynamic)
    undefined = [line.split() for line in lines("nm", "-D", "--undefined-only", library)]
    foreign = [words[-1] for words in undefined
               if words[-2] == "U" and not re.search(r"@GLIBC_", words[-1])]
    # No thread of its own, no signal handled, blocked or raised.
    forbidden = {"pthread_create", "thrd_create", "clone", "fork", "sigaction", "signal", "raise",
                 "kill", "tgkill", "pthread_kill", "pthread_sigmask", "sigprocmask", "signalfd",
                 "pthread_atfork", "__register_atfork"}
    called = {re.sub(r"@.*", "", words[-1]) for words in undefined}
    defined = [line.split() for line in lines("nm", "-D", "--defined-only", library)]
    shown = {re.sub(r"@.*", "", words[-1]) for words in defined if words[-2] != "A"}
    with open(header, encoding="utf-8") as text:
        declared = set(re.findall(r"^DIBS_API .*?\b(dibs_\w+)\(", text.read(), re.M))

    codeless, threadless = silent_places(header)
    checks = [
        ("needs the C library only",
         {name for name in needed if not re.match(r"(libc|ld-linux-.*)\.so\.\d+$", name)}),
        ("is named libdibs.so.0", set(soname) ^ {"libdibs.so.0"}),
        ("takes no symbol from elsewhere", set(foreign)),
        ("starts no thread, and leaves signals and forks alone", called & forbidden),
        ("calls something", set() if "recvmsg" in called else {"no recvmsg"}),
        ("shows exactly what the header declares", shown ^ declared),
        ("has a header that says the codes of each function", codeless),
        ("has a header that says the threads of each section", threadless),
        ("has a header whose rule of threads names each exempt function", misruled_threads(header)),
        ("declares something", set() if len(declared) > 30 else {"too few functions"}),
    ]
    print(f"1..{len(checks)}")
    failed = 0
    for number, (what, wrong) in enumerate(checks, 1):
        print(f"{'not ok' if wrong else 'ok'} {number} - libdibs.so {what}")
        for item in sorted(wrong):
            print(f"#   {item}")
        failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
