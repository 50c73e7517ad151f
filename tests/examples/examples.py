# tests/examples/examples.py -- runs examples/ and says in TAP what a user would see.
# SPDX-License-Identifier: Apache-2.0
import collections
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tap_lines import Tap  # noqa: E402

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


class Front:
    """examples/faas/run on a free port, with everything that it starts."""

    def __enter__(self):
        self.process = subprocess.Popen([EXAMPLES / "faas/run", "0"], stdout=subprocess.PIPE,
                                        text=True, start_new_session=True)
        line = self.process.stdout.readline()
        self.port = int(re.fullmatch(r"serving on port (\d+)\n", line)[1])
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.communicate()

    def ask(self, path, body=b""):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("POST", path, body)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def asked_interpreters(self, count):
        """Which processes answer so many requests at once, with how many each."""
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.ask("/")))
                   for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(status == 200 for status, _ in answers), answers
        return collections.Counter(json.loads(text)["pid"] for _, text in answers)


def answers_from_an_interpreter(front):
    status, text = front.ask("/some/path", b"hello")
    said = json.loads(text)
    assert status == 200
    assert (said["method"], said["path"], said["body"]) == ("POST", "/some/path", "hello"), said


def starts_no_interpreter_for_a_request(front):
    uses = front.asked_interpreters(40)
    assert sum(uses.values()) == 40 and len(uses) <= 4, uses


def tells_of_an_error_of_the_function(front):
    assert front.ask("/error") == (500, "ValueError: as asked\n")


def replaces_an_interpreter_that_dies(front):
    for _ in range(4):
        answer = front.ask("/crash")
        assert answer == (502, "the interpreter died\n"), answer
        front.asked_interpreters(4)


def trains_with_a_gpu_each():
    run = subprocess.run([EXAMPLES / "gpu/run"], stdout=subprocess.PIPE, text=True, check=True)
    *trainings, both = run.stdout.splitlines()
    slopes = sorted(re.fullmatch(r"device [01]: y = (\d)\.000 x \+ 1\.000", line)[1]
                    for line in trainings)
    assert slopes == ["1", "2", "3", "4", "5"], trainings
    assert both in ("both GPUs at once: 0,1", "both GPUs at once: 1,0"), both


def main():
    asked = (answers_from_an_interpreter, starts_no_interpreter_for_a_request,
             tells_of_an_error_of_the_function, replaces_an_interpreter_that_dies)
    tap = Tap()

    def tell(case, *arguments):
        try:
            case(*arguments)
            tap.case(case.__name__, [])
        except Exception as error:  # a case that breaks has failed, the others go on
            tap.case(case.__name__, [repr(error)])

    with Front() as front:
        for case in asked:
            tell(case, front)
    tell(trains_with_a_gpu_each)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
