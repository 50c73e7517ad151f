# tests/tool/holding.py -- what the cases of the tool share: two pools, who holds them, who waits.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pwd
import re

from tap import expect_equal

USER = pwd.getpwuid(os.geteuid()).pw_name

POOLS = """
[[pool]]
name = "gpu"
kind = "counted"
slots = 2
attributes = [{ device = "0" }, { device = "1" }]
[[pool]]
name = "web"
kind = "worker"
"""


def steady(text):
    """Durations and process numbers differ from run to run; their places do not."""
    text = re.sub(r"\b\d+(\.\d+)?(ns|us|ms|s)\b", "T", text)
    text = re.sub(r"\b\d+min(\d+s)?\b", "T", text)
    text = re.sub(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b", "D", text)
    text = re.sub(r'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"', '"D"', text)
    text = re.sub(r'"(\w*_ns|pid|\w+_pid|uid|gid|turns)":\d+', r'"\1":N', text)
    text = re.sub(r'"account":"uid:\d+"|"holder_account":"uid:\d+"',
                  lambda found: re.sub(r"\d+", "U", found.group()), text)
    text = re.sub(r"\buid:\d+", "uid:U", text)
    return re.sub(r"\bprocess \d+", "process P", text)


def hold(place, *arguments):
    """Starts `dibs claim` and waits until it says that it holds: the process and what it said."""
    child = place.begin("claim", "-o", "json", *arguments)
    said = json.loads(child.stdout.readline())
    return child, said


def wait_until(place, command, holds):
    """Runs the command, whose answers come as fast as they can, until what it says is so."""
    while True:
        code, out, err = place.run(*command)
        expect_equal((code, err), (0, ""))
        rows = [json.loads(line) for line in out.splitlines()]
        if holds(rows):
            return rows


def waiting(place, count):
    return wait_until(place, ("ls", "claims", "-o", "jsonl"), lambda rows: len(rows) == count)


def squeezed(text):
    return [" ".join(line.split()) for line in steady(text).splitlines()]
