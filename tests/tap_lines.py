# tests/tap_lines.py -- cases as lines of TAP; one that fails is followed by what is wrong.
# SPDX-License-Identifier: Apache-2.0
import sys


class Tap:
    """Prints as it goes, to the standard output that there is when it is made."""

    def __init__(self):
        self.out = sys.stdout
        self.count = 0
        self.failed = 0

    def case(self, name, wrong):
        """`wrong` lists what is: nothing, if the case passes."""
        self.count += 1
        self.failed += bool(wrong)
        name = name.replace("#", "")
        print(f"{'not ok' if wrong else 'ok'} {self.count} - {name}", file=self.out, flush=True)
        for line in wrong:
            print(f"#   {line}", file=self.out, flush=True)

    def equal(self, name, found, expected):
        self.case(name, [] if found == expected else [f"expected {expected!r}", f"found {found!r}"])

    def skip(self, name, reason):
        self.count += 1
        name = name.replace("#", "")
        print(f"ok {self.count} - {name} # SKIP {reason}", file=self.out, flush=True)

    def note(self, text):
        print(f"# {text}", file=self.out, flush=True)

    def end(self):
        """The plan, and the exit code: nothing at all is a failure, too."""
        print(f"1..{self.count}", file=self.out, flush=True)
        return 1 if self.failed or self.count == 0 else 0
