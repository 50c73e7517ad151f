#!/usr/bin/env python3
# tests/tool/metrics.py -- `dibs metrics`: its text as Prometheus reads it, what docs/metrics.md and the
# board for Grafana say of it, and its service while the broker comes and goes.
#
#   metrics.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys

from holding import hold, waiting
from tap import Skip, case, expect, expect_equal, main, stop

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = """
[[account]]
name = "batch"
rate = 1.5
[[pool]]
name = "gpu"
kind = "counted"
slots = 2
[[pool]]
name = "far"
kind = "worker"
order = "account"
[[pool]]
name = "py"
kind = "worker"
workers_max = 4
[[pool]]
name = "near"
kind = "counted"
slots = 1
backlog_max = 1
[[set]]
name = "any"
pools = ["gpu", "near"]
rank = "load"
cool_down = "1h"
[[set]]
name = "ordered"
pools = ["near"]
"""
SAMPLE = re.compile(r'(\w+)(?:\{(.*)\})? (\S+)')


class Told:
    """A text: the type of each family, and the value of each sample by name and labels."""

    def __init__(self, text):
        self.types, self.helps, self.values = {}, {}, {}
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                name, kind = line.split()[2:]
                expect(name not in self.types, f"{name} comes twice")
                self.types[name] = kind
            elif line.startswith("# HELP "):
                self.helps[line.split()[2]] = line.split(maxsplit=3)[3]
            else:
                name, labels, value = SAMPLE.fullmatch(line).groups()
                key = (name, *sorted(re.findall(r'(\w+)="([^"]*)"', labels or "")))
                expect(key not in self.values, f"{key} comes twice")
                self.values[key] = float(value)

    def __call__(self, name, **labels):
        return self.values[(name, *sorted(labels.items()))]

    def family(self, sample):
        base = re.sub(r"_(bucket|sum|count)$", "", sample)
        return base if self.types.get(base) == "histogram" else sample


def metrics(place):
    code, out, err = place.run("metrics")
    expect_equal((code, err), (0, ""))
    return out


def busy(place):
    """Two leases, two claims that wait, one of a pool ordered by account, and an application."""
    place.start(CONFIG)
    expect_equal(place.run("app", "add", "solo", "--pool", "gpu")[0], 0)
    expect_equal(place.run("exec", "gpu", "--", "true")[0], 0)
    hold(place, "gpu")
    hold(place, "gpu")
    place.begin("claim", "gpu", "-t", "1h")
    place.begin("claim", "far", "--account", "batch", "-t", "1h")
    waiting(place, 2)


def scrape(port, path="/metrics"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def serve(place, *options):
    child = place.begin("metrics", "--listen", "127.0.0.1:0", *options)
    line = child.stderr.readline()
    found = re.fullmatch(
        r"dibs metrics: serves http://127\.0\.0\.1:(\d+)/metrics; interrupt to end it\n", line)
    expect(found, line)
    return child, int(found[1])


def scrape_until(port, holds):
    """The broker is asked once a second at most, so this comes to an end."""
    while True:
        status, text = scrape(port)
        expect_equal(status, 200)
        told = Told(text)
        if holds(told):
            return told


@case("the text counts what has happened")
def counts(place):
    busy(place)
    told = Told(metrics(place))
    expect_equal(told("dibs_up"), 1)
    expect_equal(told("dibs_build_info", version="0.1.0"), 1)
    expect_equal(told("dibs_epoch"), 1)
    expect_equal(told("dibs_table_rows", table="leases"), 2)
    expect_equal(told("dibs_table_rows_limit", table="leases"), 16384)
    expect_equal(told("dibs_pool_slots", pool="gpu", state="leased"), 2)
    expect_equal(told("dibs_pool_slots", pool="gpu", state="idle"), 0)
    expect_equal(told("dibs_pool_claims", pool="gpu", state="waiting"), 1)
    expect_equal(told("dibs_pool_claims", pool="far", state="waiting"), 1)
    expect_equal(told("dibs_claims_accepted_total", pool="gpu"), 4)
    expect_equal(told("dibs_claims_granted_total", pool="gpu"), 3)
    expect_equal(told("dibs_claims_granted_at_once_total", pool="gpu"), 3)
    expect_equal(told("dibs_leases_released_total", pool="gpu"), 1)
    expect_equal(told("dibs_account_claims_waiting", account="batch"), 1)
    expect_equal(told("dibs_account_rate_slots", account="batch"), 1.5)
    expect(told("dibs_pool_oldest_wait_seconds", pool="gpu") > 0, "nobody waits")
    paths = [told("dibs_claim_wait_seconds_count", pool="gpu", path=path)
             for path in ("fast", "at_once", "queued")]
    expect_equal((sum(paths), paths[2]), (3, 0))
    expect_equal(told("dibs_lost_wakeups_total"), 0)
    expect_equal(told("dibs_reported_lost_wakeups_total"), 0)


@case("of a set that is ranked by load it says which pool is tried when, and which is saturated")
def ranked(place):
    place.start(CONFIG)

    def members():
        told = Told(metrics(place))
        return {pool: (told("dibs_set_member_rank", set="any", pool=pool),
                       told("dibs_set_member_saturated", set="any", pool=pool)) for pool in ("gpu", "near")}

    expect_equal(members(), {"gpu": (1, 0), "near": (2, 0)})
    for _ in range(2):
        hold(place, "gpu")
    expect_equal(members(), {"gpu": (0, 0), "near": (1, 0)})  # gpu is at its cap
    hold(place, "near")
    place.begin("claim", "near", "-t", "1h")
    place.begin("claim", "gpu", "-t", "1h")
    place.begin("claim", "gpu", "-t", "1h")
    waiting(place, 3)
    place.begin("claim", "any", "-t", "1h")  # near, which has fewer that wait, is full
    waiting(place, 4)
    expect_equal(members(), {"gpu": (1, 0), "near": (2, 1)})
    expect_equal(place.run("drain", "near")[0], 0)
    expect_equal(members(), {"gpu": (1, 0), "near": (0, 1)})
    expect_equal({dict(key[1:])["set"] for key in Told(metrics(place)).values if key[0].startswith("dibs_set_")},
                 {"any"})


@case("a claim that waited is in the histogram of its pool, its sum beside it")
def queued(place):
    place.start(CONFIG)
    first, _ = hold(place, "gpu:2")
    second = place.begin("claim", "gpu", "-o", "json")
    waiting(place, 1)
    first.send_signal(signal.SIGTERM)
    second.stdout.readline()
    told = Told(metrics(place))
    at = {"pool": "gpu", "path": "queued"}
    expect_equal(told("dibs_claim_wait_seconds_count", **at), 1)
    waited = told("dibs_claim_wait_seconds_sum", **at)
    expect(waited > 0, "it did not wait")
    for key, count in told.values.items():
        labels = dict(key[1:])
        if key[0] != "dibs_claim_wait_seconds_bucket" or at.items() - labels.items():
            continue
        expect_equal(count, 1 if waited <= float(labels["le"]) else 0)


@case("names and units are as Prometheus wants them, histograms add up")
def form(place):
    busy(place)
    told = Told(metrics(place))
    expect_equal(set(told.helps), set(told.types))
    for name, kind in told.types.items():
        expect(re.fullmatch(r"dibs_[a-z_]+", name), name)
        expect_equal((name, kind == "counter"), (name, name.endswith("_total")))
        expect(not re.search(r"_(ns|us|ms|milliseconds|percent)(_|$)", name), f"{name}: no base unit")
    for key, value in told.values.items():
        expect(told.family(key[0]) in told.types, f"{key[0]} has no type")
        if key[0].endswith("_count"):
            base = key[0][:-len("_count")]
            buckets = [(float(dict(other[1:])["le"]), count) for other, count in told.values.items()
                       if other[0] == base + "_bucket"
                       and [label for label in other[1:] if label[0] != "le"] == list(key[1:])]
            expect_equal(len(buckets), 17)
            expect_equal(buckets, sorted(buckets))
            expect_equal([count for _, count in buckets], sorted(count for _, count in buckets))
            expect_equal(buckets[-1], (float("inf"), value))


@case("docs/metrics.md has each metric with its type and labels, and no other")
def documented(place):
    busy(place)
    told = Told(metrics(place))
    labels = {name: set() for name in told.types}
    for key in told.values:
        labels[told.family(key[0])] |= {label for label, _ in key[1:]} - {"le"}
    rows = re.findall(r"^\| `(dibs_\w+)` \| (\w+) \| ([\w, ]*)\|", (ROOT / "docs/metrics.md").read_text(),
                      re.M)
    expect_equal({name: (kind, {label for label in re.split(r"[, ]+", words) if label})
                  for name, kind, words in rows},
                 {name: (kind, labels[name]) for name, kind in told.types.items()})


@case("the board for Grafana asks for what there is, by labels that it has, and leaves nothing out")
def board(place):
    busy(place)
    told = Told(metrics(place))
    labels = {}
    for key in told.values:
        labels.setdefault(key[0], {"job", "instance"}).update(label for label, _ in key[1:])
    shown = json.loads((ROOT / "packaging/grafana/dibs.json").read_text())
    asked = [target["expr"] for panel in shown["panels"] for target in panel["targets"]]
    asked += [variable["query"]["query"] for variable in shown["templating"]["list"]
              if variable["type"] == "query"]
    families = set()
    for text in asked:
        names = re.findall(r"\bdibs_\w+", text)
        expect(names, f"{text} asks for nothing")
        for name in names:
            expect(name in labels, f"{name} is not told: {text}")
            families.add(told.family(name))
            used = set(re.findall(r'(\w+)=~?"', text))
            used |= {word for by in re.findall(r"by \(([^)]*)\)", text) for word in by.split(", ")}
            expect(used <= labels[name], f"{name} has no {used - labels[name]}: {text}")
    expect_equal(set(told.types) - families, set())
    expect_equal(len({panel["id"] for panel in shown["panels"]}), len(shown["panels"]))


@case("promtool check metrics finds nothing")
def promtool(place):
    tool = shutil.which("promtool")
    if tool is None:
        raise Skip("there is no promtool here: it comes with Debian's prometheus, which also starts a server")
    busy(place)
    _, port = serve(place)
    for text in (metrics(place), scrape(port)[1]):
        checked = subprocess.run([tool, "check", "metrics"], input=text, capture_output=True, text=True,
                                 check=False, timeout=60)
        expect_equal((checked.returncode, checked.stdout + checked.stderr), (0, ""))


@case("--listen serves them, says dibs_up 0 while the broker is gone, and ends on TERM")
def served(place):
    child, port = serve(place)  # before there is a broker
    expect_equal(scrape_until(port, lambda told: True)("dibs_up"), 0)
    expect_equal(child.stderr.readline()[:37], "dibs metrics: dibs_up is 0: no broker")
    broker = place.start(CONFIG)
    told = scrape_until(port, lambda told: told("dibs_up") == 1)
    expect_equal(told("dibs_pool_slots", pool="gpu", state="idle"), 2)
    expect_equal(child.stderr.readline(), "dibs metrics: the broker answers\n")
    stop(broker)
    told = scrape_until(port, lambda told: told("dibs_up") == 0)
    expect_equal({name for name in told.types if name.startswith("dibs_")},
                 {"dibs_up", "dibs_scrape_duration_seconds"})
    broker.send_signal(signal.SIGCONT)
    scrape_until(port, lambda told: told("dibs_up") == 1)
    broker.send_signal(signal.SIGKILL)
    broker.wait()
    scrape_until(port, lambda told: told("dibs_up") == 0)
    place.start(CONFIG)
    scrape_until(port, lambda told: told("dibs_up") == 1)
    expect_equal(scrape(port, "/")[0], 404)
    with socket.create_connection(("127.0.0.1", port)):  # says nothing, and holds nothing up
        child.send_signal(signal.SIGTERM)
        expect_equal(child.wait(), 0)


@case("many that connect and say nothing do not keep a scrape waiting")
def silent(place):
    place.start(CONFIG)
    _, port = serve(place)
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            connection.sendall(b"GET /met")
        expect_equal(scrape_until(port, lambda told: True)("dibs_up"), 1)


@case("however often it is asked, it asks the broker once a second")
def once_a_second(place):
    place.start(CONFIG)
    _, port = serve(place)
    first = scrape_until(port, lambda told: True)
    asked = set()
    for _ in range(200):
        asked.add(scrape_until(port, lambda told: True)("dibs_uptime_seconds"))
    spent = max(asked) - first("dibs_uptime_seconds")
    expect(len(asked) <= spent + 2, f"{len(asked)} times in {spent} s")


@case("an address that is taken, that others reach, that is none")
def addresses(place):
    place.start(CONFIG)
    _, port = serve(place)
    code, out, err = place.run("metrics", "--listen", f"127.0.0.1:{port}")
    expect_equal((code, out, err), (1, "", f"dibs metrics: --listen 127.0.0.1:{port}: another program "
                                    "listens there; choose another port\n"))
    code, out, err = place.run("metrics", "--listen", "0.0.0.0:0")
    expect_equal((code, out), (2, ""))
    expect("say --remote if they shall" in err, err)
    for text in ("9464", "localhost:", "127.0.0.1:70000", "127.0.0.1:80s", "gpu:1", "::1:9464", "[::1:1"):
        code, out, err = place.run("metrics", "--listen", text)
        expect_equal((code, out, err),
                     (2, "", f"dibs metrics: --listen {text}: write an address and a port, such as "
                      "127.0.0.1:9464 or [::1]:9464\n"))
    expect_equal(place.run("metrics", "--remote")[0], 2)
    child = place.begin("metrics", "--listen", "0.0.0.0:0", "--remote")
    expect("serves http://0.0.0.0:" in child.stderr.readline(), "it does not serve")


@case("without a broker there is no text")
def nobody(place):
    code, out, err = place.run("metrics")
    expect_equal((code, out), (3, ""))
    expect(err.startswith("dibs metrics: no broker answers at "), err)


if __name__ == "__main__":
    os.environ["no_proxy"] = "*"
    main(sys.argv)
