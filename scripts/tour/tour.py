#!/usr/bin/env python3
# scripts/tour/tour.py -- a minute with dibs: eight warm processes, three tenants, and what goes wrong.
#
# Facts pass or fail, one line each; times are printed beside what they compare with, in the same
# run. demo.json and demo.svg have both. Exit code: 0 every fact holds, 1 one does not, 2 the tour
# could not begin.
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clientlib/bindings/python"))

from stage import BUILD, DIBS, SLOTS, TENANTS, Stage, eventually  # noqa: E402

os.environ.setdefault("DIBS_LIBRARY", str(BUILD / "clientlib/libdibs.so"))
os.environ["PYTHONPATH"] = sys.path[0]

import dibs  # noqa: E402: after it has been said where the library is

import drawing  # noqa: E402
import incidents  # noqa: E402
from incidents import shown  # noqa: E402
from picture import Picture  # noqa: E402


class Facts:
    def __init__(self, picture):
        self.all = []
        self.picture = picture

    def check(self, good, words):
        self.all.append({"verdict": "passed" if good else "failed", "fact": words})
        self.picture.tell(("ok    " if good else "FAIL  ") + words)

    def failed(self):
        return sum(fact["verdict"] == "failed" for fact in self.all)


class Tour:
    def __init__(self, stage, picture, facts):
        self.stage, self.picture, self.facts = stage, picture, facts
        self.client = dibs.connect(timeout=10)
        self.started = time.monotonic()
        self.samples = []
        self.happened = []
        self.broken = []
        self.watched = threading.Event()

    def now(self):
        return time.monotonic() - self.started

    def watch(self):
        """Looks at the counters all the while, and draws them; a thread of its own."""
        with dibs.connect(timeout=10) as client:
            while not self.watched.wait(0.05):
                self.look(client)

    def look(self, client):
        counters = client.snapshot("work")
        states = ("idle", "reserved", "leased", "recovering", "unknown")
        if sum(getattr(counters, state) for state in states) != counters.slots:
            self.broken.append(counters)
        self.samples.append((self.now(), counters))
        self.picture.draw(self.now(), counters, self.stage.tenants)

    def happen(self, incident):
        """An incident takes its time; it is marked at its instant, or else at its beginning."""
        begun, self.stage.struck = self.now(), None
        try:
            good, words = incident(self.stage)
        except Exception as error:  # whatever it is: the fact does not hold
            good, words = False, repr(error)
        struck = begun if self.stage.struck is None else self.stage.struck - self.started
        self.happened.append((struck, incidents.SHORT[incident], incident.__doc__, words))
        self.facts.check(good, f"{incident.__doc__}: {words}")

    def run(self, seconds):
        watcher = threading.Thread(target=self.watch)
        watcher.start()
        try:
            share = seconds / (len(incidents.ALL) + 1)
            for number, incident in enumerate(incidents.ALL, 1):
                time.sleep(max(number * share - self.now(), 0))
                self.happen(incident)
            time.sleep(max(seconds - self.now(), 0))
        finally:
            self.watched.set()
            watcher.join()

    def account(self):
        """Everybody goes home; what the tenants and the broker count must agree."""
        for tenant in self.stage.tenants:
            tenant.end()
        sums = {}
        for tenant in self.stage.tenants:
            for outcome, count in tenant.outcomes.items():
                sums[outcome] = sums.get(outcome, 0) + count
        submitted = sums.pop("submitted", 0)
        parts = " + ".join(f"{count} {name}" for name, count in sums.items())
        self.facts.check(submitted == sum(sums.values()) == sums.get("granted", 0) > 0,
                         f"Every claim is granted and accounted for: {parts} = {submitted} claims")
        settled = eventually(lambda: self.client.snapshot("work").idle == SLOTS)
        totals = self.client.totals("work")
        ended = totals.granted + totals.expired + totals.cancelled + totals.rejected
        self.facts.check(settled and totals.accepted == ended == submitted,
                         f"The broker counts the same: accepted {totals.accepted}, "
                         f"granted {totals.granted}")
        self.facts.check(not self.broken and len(self.samples) > 0,
                         f"No slot is lost or counted twice: {len(self.broken)} of "
                         f"{len(self.samples)} pictures do not add up")
        self.facts.check(totals.net_found_work == 0,
                         f"No wake-up is lost: the safety net found work "
                         f"{totals.net_found_work} times")


BEYOND = 10  # so many times lie beyond a quantile that is told


class Times:
    """How long something takes: quantiles of so many times; None where they are too few for it."""

    def __init__(self, name, told, ours=False):
        self.name, self.ours, self.count = name, ours, told["count"]
        self.p50, self.p99, self.p999 = (told[key] for key in ("p50_ns", "p99_ns", "p999_ns"))

    @staticmethod
    def of(name, measured):
        measured = sorted(measured)
        told = {"count": len(measured)}
        for key, share in (("p50_ns", 0.5), ("p99_ns", 0.99), ("p999_ns", 0.999)):
            place = int(len(measured) * share)
            told[key] = measured[place] if len(measured) >= place + BEYOND else None
        return Times(name, told)

    def told(self):
        return {"count": self.count, "p50_ns": self.p50, "p99_ns": self.p99, "p999_ns": self.p999}


def measure():
    """Everything that is timed, in one run, and claims a second. Claims and what they compare with
    take turns, since the machine changes meanwhile; of ten rounds the best one counts. Python has
    one."""
    def told(*words):
        return json.loads(subprocess.run([DIBS, *words], capture_output=True, text=True,
                                         check=True).stdout)

    def best(rounds):
        return min(rounds, key=lambda one: one["p50_ns"] or float("inf"))

    floors, claims, takes = [], [], []
    for _ in range(5):
        floors.append(told("demo-floors"))
        for _ in range(2):
            claims.append(told("bench", "clock", "--ask", "--claims", "20000", "-o", "json"))
            takes.append(told("bench", "clock", "--claims", "20000", "-o", "json"))
    floors = {name: best([one[name] for one in floors]) for name in floors[0]}
    claim, take = best(claims), best(takes)

    cold = []
    for _ in range(20):
        before = time.monotonic_ns()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        cold.append(time.monotonic_ns() - before)

    return [Times("parked lease, taken", take | {"count": take["claims"]}),
            Times("ring round trip", floors["ring"]),
            Times("dibs claim", claim | {"count": claim["claims"]}, True),
            Times("UNIX socket round trip", floors["socket"]),
            Times("cold start: fork + exec", floors["fork_exec"]),
            Times.of("cold start: Python", cold)], claim["per_second"]


def table(times, per_second):
    def cell(value):
        return f"{'-' if value is None else shown(value):>9}"

    ours = next(one.p50 for one in times if one.ours)
    lines = [f"{'':24}{'p50':>9}{'p99':>9}{'p99.9':>9}{'of':>7}  p50 beside a claim's"]
    for one in times:
        if one.p50 is None:
            lines.append(f"{one.name:24}   too few undisturbed times on this busy machine")
            continue
        beside = "" if one.ours else f"  {drawing.beside(one.p50, ours)}"
        lines.append(f"{one.name:24}" + "".join(map(cell, (one.p50, one.p99, one.p999))) +
                     f"{one.count:>7}" + beside)
    lines.append(f"{per_second} claims and releases a second, one after the other")
    return lines


def path_from_here(file):
    """Below the present folder as its user would type it, else whole."""
    file, here = file.resolve(), pathlib.Path.cwd()
    return file.relative_to(here) if file.is_relative_to(here) else file


def main():
    parser = argparse.ArgumentParser(prog="scripts/demo", description="A minute with dibs.")
    parser.add_argument("--seconds", type=float, default=60, help="how long (60)")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."),
                        help="folder for demo.json and demo.svg (the present one)")
    options = parser.parse_args()
    if not 3 <= options.seconds <= 3600:
        parser.error(f"--seconds {options.seconds:g}: from 3 to 3600")
    if not options.out.is_dir():
        parser.error(f"--out {options.out}: " + ("is no folder" if options.out.exists()
                                                else "there is no such folder"))
    if not os.access(options.out, os.W_OK | os.X_OK):
        parser.error(f"--out {options.out}: you may not write there")
    with Picture(options.seconds) as picture, Stage() as stage:
        facts = Facts(picture)
        times, per_second = measure()
        picture.tell(f"A broker of its own, {SLOTS} warm processes, tenants: batch, web, alice.\n")
        stage.open()
        tour = Tour(stage, picture, facts)
        tour.run(options.seconds)
        picture.tell("")
        tour.account()
        tour.client.close()
        wrong = stage.close()
        facts.check(not wrong, "Everybody ends when told to" + "".join(f"; {one}" for one in wrong))
        for line in ["", *table(times, per_second), ""]:
            picture.tell(line)
        report(options.out, facts, times, per_second, tour, options.seconds)
        svg, figures = (path_from_here(options.out / name) for name in ("demo.svg", "demo.json"))
        picture.tell(f"picture: {svg}   (a browser shows it: xdg-open {shlex.quote(str(svg))})")
        picture.tell(f"figures: {figures}")
        print(f"\n{len(facts.all) - facts.failed()} passed, {facts.failed()} failed, 0 skipped")
    return 1 if facts.failed() else 0


def held_of(facts):
    whole = len(facts.all)
    failed = facts.failed()
    return f"{failed} of {whole} facts do not hold" if failed else f"all {whole} facts hold"


def report(folder, facts, times, per_second, tour, seconds):
    held = sum(counters.leased for _, counters in tour.samples) / (SLOTS * len(tour.samples))
    (folder / "demo.json").write_text(json.dumps({
        "schema": "dibs.demo/1", "facts": facts.all, "claims_per_second": per_second,
        "times": {one.name: one.told() for one in times},
        "tenants": {tenant.name: tenant.outcomes for tenant in tour.stage.tenants},
        "incidents": [{"at_s": round(when, 3), "what": what}
                      for when, _, what, _ in tour.happened],
        "leased_share": round(held, 4)}, indent=2) + "\n", encoding="utf-8")
    granted = sum(tenant.outcomes.get("granted", 0) for tenant in tour.stage.tenants)
    drawing.draw(folder / "demo.svg", times, tour.samples, tour.happened, SLOTS,
                 (f"dibs hands out {SLOTS} warm processes to three tenants",
                  f"{granted} claims in {seconds:.0f} seconds, while clients, a worker and the broker "
                  f"are killed: {held_of(facts)}"),
                 f"tenant batch works and rests, {TENANTS['batch'][2]} s each")


ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def stop(*_):
    """The way out of everything, so that nothing is left behind: heard once, and to its end."""
    for number in ENDS:
        signal.signal(number, signal.SIG_IGN)
    threading.excepthook = lambda *_: None  # of those who lose their broker
    raise KeyboardInterrupt


if __name__ == "__main__":
    for heard in ENDS:
        if signal.getsignal(heard) != signal.SIG_IGN:  # as nohup has it
            signal.signal(heard, stop)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        os._exit(130)  # what an incident has begun need not come to its end
    except (OSError, RuntimeError, subprocess.SubprocessError, dibs.Error) as error:
        try:
            print(f"demo: {error}", file=sys.stderr, flush=True)
        except OSError:  # the terminal has gone, and SIGHUP, which says so, came later than the error
            os._exit(130)
        sys.exit(2)
