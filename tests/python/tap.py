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


sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tap_lines import Tap  # noqa: E402


class Reports:
    def __init__(self):
        self.tap = Tap()

    def pytest_runtest_logreport(self, report):
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else "skipped"
            self.tap.skip(report.nodeid, reason)
        elif report.when == "call" or report.failed:  # a set-up that fails has no call
            self.say(report)

    def pytest_collectreport(self, report):
        if report.failed:
            self.say(report)

    def say(self, report):
        self.tap.case(report.nodeid, report.longreprtext.splitlines() if report.failed else [])


if __name__ == "__main__":
    reports = Reports()
    sys.stdout = sys.stderr  # for what pytest says
    folder = str(pathlib.Path(__file__).parent)
    code = pytest.main(["-q", "-q", "-p", "no:cacheprovider", "--rootdir", folder,
                        "-W", "error", *sys.argv[1:], folder], plugins=[reports])
    ended = reports.tap.end()
    sys.exit(ended if code in (0, 1) else 1)
