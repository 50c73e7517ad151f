#!/usr/bin/env python3
# tests/python/tap.py -- runs pytest on this folder and says each case in TAP, so that it is counted.
#
#   tests/python/tap.py [PYTEST-ARGUMENT...]
# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

try:
    import pytest
except ImportError:
    print("1..0 # SKIP python3-pytest is not installed")
    sys.exit(0)


class Tap:
    def __init__(self, out):
        self.out = out
        self.count = 0

    def say(self, ok, report, more=""):
        self.count += 1
        name = report.nodeid.replace("#", "")
        print(f"{'ok' if ok else 'not ok'} {self.count} - {name}{more}", file=self.out,
              flush=True)
        if not ok:
            for line in report.longreprtext.splitlines():
                print(f"#   {line}", file=self.out)

    def pytest_runtest_logreport(self, report):
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else "skipped"
            self.say(True, report, f" # SKIP {reason}")
        elif report.when == "call" or report.failed:  # a set-up that fails has no call
            self.say(not report.failed, report)

    def pytest_collectreport(self, report):
        if report.failed:
            self.say(False, report)


if __name__ == "__main__":
    tap = Tap(sys.stdout)
    sys.stdout = sys.stderr  # for what pytest says
    folder = str(pathlib.Path(__file__).parent)
    code = pytest.main(["-q", "-q", "-p", "no:cacheprovider", "--rootdir", folder,
                        "-W", "error", *sys.argv[1:], folder], plugins=[tap])
    print(f"1..{tap.count}", file=tap.out)
    sys.exit(0 if code in (0, 1) and tap.count > 0 else 1)
