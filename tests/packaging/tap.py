# tests/packaging/tap.py -- cases as lines of TAP; one that fails is followed by what is wrong.
# SPDX-License-Identifier: Apache-2.0
import sys


class Tap:
    def __init__(self):
        self.count = 0
        self.failed = 0

    def case(self, name, wrong):
        """`wrong` lists what is: nothing, if the case passes."""
        self.count += 1
        self.failed += bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {self.count} - {name}")
        for line in wrong:
            print(f"#   {line}")

    def equal(self, name, found, expected):
        self.case(name, [] if found == expected else [f"expected {expected!r}", f"found {found!r}"])

    def skip(self, name, reason):
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {reason}")

    def end(self):
        print(f"1..{self.count}")
        sys.exit(1 if self.failed or self.count == 0 else 0)
