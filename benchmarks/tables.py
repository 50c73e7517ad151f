#!/usr/bin/env python3
# benchmarks/tables.py -- the tables of benchmarks/README.md from runs that were written as JSON.
#
#   benchmarks/tables.py RUN.json...     nanoseconds are the first run's, ratios those of all
#
# A state of the machine has a table row where the first run kept rounds of it.
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import sys


def shown(ns):
    return f"{ns:,.0f}" if ns >= 1000 else f"{ns:.0f}" if ns >= 100 else f"{ns:.1f}"


def verdicts(found):
    """What each target wishes, and whether every run met it."""
    wishes, met = [], []
    for number, target in enumerate(found[0]["targets"]):
        wishes.append(f"{target['of'].replace('x ', '× ')} ≤ {target['limit']:g}")
        all_met = [one["targets"][number]["met"] for one in found]
        met.append("met" if all(all_met) else
                   "missed" if not any(all_met) else f"met in {sum(all_met)} of {len(found)}")
    return "; ".join(wishes), "; ".join(met)


def ratios(found, name):
    return ", ".join(f"{one[name]:.2f}" for one in found if name in one)


def rows_like(runs, row):
    key = ("group", "name", "state")
    return [one for run in runs for one in run["rows"] if all(one[k] == row[k] for k in key)]


def group_table(runs, group):
    lines = [f"### {group[0].upper()}{group[1:]}", ""]
    rounds = [r for run in runs for r in run["rounds"] if r["group"] == group]
    if rounds:
        kept = [" / ".join(map(str, (*r["kept"].values(), r["mixed_dropped"]))) for r in rounds]
        states = " / ".join(rounds[0]["kept"])
        lines += [f"Rounds kept, {states} / dropped: {', '.join(kept)}.", ""]
    lines += ["| | state | p50 ns | p99 ns | p99.9 ns | × floor p50, each run | × floor p99 "
              "| wished | |", "|---|---|---|---|---|---|---|---|---|"]
    for row in (row for row in runs[0]["rows"] if row["group"] == group):
        found = rows_like(runs, row)
        wished, met = verdicts(found)
        times = " | ".join(shown(row[name]) for name in ("p50_ns", "p99_ns", "p999_ns"))
        lines.append(f"| {row['name']} | {row['state']} | {times} | {ratios(found, 'ratio_p50')} "
                     f"| {ratios(found, 'ratio_p99')} | {wished} | {met} |")
    return lines


def facts_table(runs):
    lines = ["### Memory, idleness, the claim path", "", "| | each run | wished | |",
             "|---|---|---|---|"]
    notes = []
    for fact in runs[0]["facts"]:
        found = [one for run in runs for one in run["facts"] if one["name"] == fact["name"]]
        wished, met = verdicts(found)
        values = ", ".join(f"{one['value']:.0f}" for one in found)
        lines.append(f"| {fact['name']} | {values} {fact['unit']} | {wished} | {met} |")
        if len(fact["how"]) > 40:
            notes += ["", f"{fact['name']}: {fact['how']}"]
    return lines + notes


def us(ns):
    return f"{ns / 1000:,.0f}" if ns >= 10_000 else f"{ns / 1000:.1f}"


def workers_cell(row):
    """Percent of the ideal (without work: thousands of tasks/s), claim p99, fairness, CPU time."""
    rate = (f"{row['percent_of_ideal']:.0f} %" if "percent_of_ideal" in row else
            f"{row['tasks_per_second'] / 1000:,.0f} k")
    return (f"{rate} · {us(row['claim_p99_ns'])} · {row['fairness']:.2f} · "
            f"{us(row['cpu_ns_per_task'])}")


def workers_table(rows):
    """A line for each combination, in the state that most of its rounds were in."""
    rows = [row for row in rows if "claims" in row]
    names = list(dict.fromkeys(row["name"] for row in rows))
    lines = ["### Workers that claim, work and release", "",
             "| processes | slots | work µs | rounds | " + " | ".join(names) + " |",
             "|---|---|---|---|" + "---|" * len(names)]
    for group in dict.fromkeys(row["group"] for row in rows):
        found = [row for row in rows if row["group"] == group]
        most = max(found, key=lambda row: row["rounds"])
        cells = [workers_cell(row) for row in found if row["state"] == most["state"]]
        lines.append(f"| {most['processes']} | {most['slots']} | {most['work_us']} "
                     f"| {most['rounds']} {most['state']} | {' | '.join(cells)} |")
    return lines


def peers_table(rows):
    """A line for each contender: thousands of pairs per second, fairness."""
    rows = [row for row in rows if "claims" in row]
    lines = ["### Clients that take a slot and return it, without work", ""]
    cells, heads = {}, []
    for group in dict.fromkeys(row["group"] for row in rows):
        found = [row for row in rows if row["group"] == group]
        most = max(found, key=lambda row: row["rounds"])
        heads.append(f"{most['processes']} ({most['rounds']} {most['state']})")
        for row in found:
            if row["state"] == most["state"]:
                cells.setdefault(row["name"], []).append(
                    f"{row['tasks_per_second'] / 1000:,.0f} k · {row['fairness']:.2f}")
    lines += ["| clients (rounds) | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    return lines + [f"| {name} | {' | '.join(found)} |" for name, found in cells.items()]


def main():
    runs = [json.loads(pathlib.Path(name).read_text()) for name in sys.argv[1:]]
    if not runs:
        sys.exit("tables: name a file that scripts/bench --json wrote")
    groups = list(dict.fromkeys(row["group"] for row in runs[0]["rows"]))
    for group in groups:
        print("\n".join(group_table(runs, group)) + "\n")
    for table, kind in ((workers_table, "workers:"), (peers_table, "peers:")):
        rows = [row for row in runs[0].get("workers", []) if row["group"].startswith(kind)]
        if rows:
            print("\n".join(table(rows)) + "\n")
    if runs[0]["facts"]:
        print("\n".join(facts_table(runs)))


main()
