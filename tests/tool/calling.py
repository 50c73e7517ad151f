#!/usr/bin/env python3
# tests/tool/calling.py -- `dibs call`: a body for a worker, its answer on standard output.
#
#   calling.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import subprocess
import sys

from tap import case, expect, expect_equal, main

POOLS = ('[[pool]]\nname = "web"\nkind = "worker"\nanswer_max = 16384\npayload_max = 16384\n'
         '[[pool]]\nname = "gpu"\nkind = "counted"\nslots = 1\n')


def worker(place, script, *words):
    """A dibs worker with one slot of pool web, once it is idle."""
    child = place.begin("worker", "web:1", *words, "--", "sh", "-c", script)
    while "idle" not in place.run("ls", "slots", "-o", "json")[1]:
        expect(child.poll() is None, "the worker has ended")
    return child


@case("the answer is printed as a line, and the slot is free again")
def answered(place):
    place.start(POOLS)
    worker(place, 'while read -r line; do printf "%s\\n" "$line"; done')
    for _ in range(3):
        code, out, err = place.run("call", "web", "hello\nworld")
        expect_equal((code, err), (0, ""))
        expect_equal(json.loads(out)["body"], "hello\nworld")
    code, out, err = run_with_input(place, "from a pipe")
    expect_equal((code, json.loads(out)["body"], err), (0, "from a pipe", ""))


def run_with_input(place, text, *words):
    ended = subprocess.run([place.dibs, "call", "web", "-", *words], input=text, capture_output=True,
                           text=True, env=place.environment(), timeout=60, check=False)
    return ended.returncode, ended.stdout, ended.stderr


@case("bodies and answers of any size that the pool takes, labels for the worker")
def large(place):
    place.start(POOLS)
    worker(place, 'while read -r line; do printf "%s\\n" "$line" | wc -c; head -c 16000 /dev/zero | tr "\\0" x; '
           'echo; done', "--line-max", "100000")
    code, out, err = place.run("call", "web", "x" * 16000, "-l", "size:big")
    expect_equal((code, err), (0, ""))
    expect(int(out.splitlines()[0]) > 16000, out[:100])
    code, out, err = run_with_input(place, "x" * 16385)
    expect_equal((code, out), (6, ""))
    expect_equal(run_with_input(place, "x" * 16384)[:2], (6, ""))  # with what comes along
    expect_equal(run_with_input(place, "x" * 100000)[:2], (6, ""))
    expect("16385 bytes" in err and "16384 (payload_max)" in err, err)


@case("an answer that comes with the grant is printed, and the slot given back")
def held(place):
    place.start(POOLS)
    worker(place, 'while read -r line; do case $line in *assign*) echo port 80;; *) echo clean;; esac; done',
           "--lines", "hold")
    for _ in range(2):
        expect_equal(place.run("call", "web", ""), (0, "port 80\n", ""))


@case("no answer within the timeout: 124; a worker that dies: 125; nobody ready: 75 or 124")
def unanswered(place):
    place.start(POOLS)
    expect_equal(place.run("call", "web", "x", "--now")[0], 75)
    expect_equal(place.run("call", "web", "x", "--timeout", "1ms")[0], 124)
    worker(place, 'while read -r line; do case $line in *die*) exit 9;; esac; done', "--backoff", "0ns")
    code, out, err = place.run("call", "web", "x", "--timeout", "2s")
    expect_equal((code, out, err),
                 (124, "", 'dibs call: a worker of pool "web" has not answered within 2s\n'))
    code, out, err = place.run("call", "web", "die")
    expect_equal((code, out), (125, ""))
    expect(err.startswith("dibs call: its worker gave no answer: "), err)


@case("a counted pool, an unknown one, wrong words")
def refused(place):
    place.start(POOLS)
    code, _, err = place.run("call", "gpu", "x")
    expect_equal(code, 2)
    expect("counted pool" in err and "dibs exec" in err, err)
    expect_equal(place.run("call", "nowhere", "x")[0], 4)
    expect_equal(place.run("call", "web")[0], 2)
    expect_equal(place.run("call", "web:2", "x")[0], 2)
    expect_equal(place.run("call", "web", "x", "--now", "--timeout", "1s")[0], 2)


if __name__ == "__main__":
    main(sys.argv)
