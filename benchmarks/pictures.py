#!/usr/bin/env python3
# benchmarks/pictures.py -- draws the pictures of benchmarks/README.md from a run's JSON.
#
#   benchmarks/pictures.py RUN.json FOLDER     latency, workers, throughput and growth, as SVG
#
# A picture whose group the run does not have is not drawn. Of each group it shows the state of the
# machine in which most of the rounds were.
# SPDX-License-Identifier: Apache-2.0
import html
import json
import math
import pathlib
import sys

LOCAL = ("jobserver pipe", "robust mutex", "POSIX semaphore", "System V semaphore", "flock")
LIGHT = {"dibs": "#0969da", "local": "#1a7f37", "server": "#bc4c00", "ink": "#1f2328", "faint": "#656d76",
         "rule": "#d8dee4", "paper": "#ffffff"}
DARK = {"dibs": "#58a6ff", "local": "#56d364", "server": "#f0883e", "ink": "#e6edf3", "faint": "#9198a1",
        "rule": "#30363d", "paper": "#0d1117"}


def side(name):
    return "dibs" if name.startswith("dibs") else "local" if name.startswith(LOCAL) else "server"


def dashes(name):
    """Tells apart the lines of dibs: as configured by default it is solid."""
    return "2 3" if "quantum 0, clients do not" in name else "6 3" if "quantum 0" in name else \
        "9 2" if "clients do not" in name else ""


def style(colours):
    text = "".join(f".{name}{{fill:{colours[name]}}}" for name in ("dibs", "local", "server", "ink", "faint", "paper"))
    return text + "".join(f".l-{name}{{stroke:{colours[name]}}}" for name in ("dibs", "local", "server", "faint", "rule"))


class Picture:
    def __init__(self, width, height, title, subtitle):
        self.size = (width, height)
        self.parts = []
        self.text(16, 26, title, "ink", weight="600", size=16)
        self.text(16, 46, subtitle, "faint", size=12)

    def text(self, x, y, words, colour, anchor="start", weight="400", size=13):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{colour}" text-anchor="{anchor}" '
                          f'font-size="{size}" font-weight="{weight}">{html.escape(words)}</text>')

    def legend(self, y):
        x = 16
        for colour, words in (("dibs", "dibs"), ("local", "kernel or shared memory, no server"),
                              ("server", "another server")):
            self.parts.append(f'<circle cx="{x + 4}" cy="{y - 4}" r="4.5" class="{colour}"/>')
            self.text(x + 14, y, words, "ink", size=12)
            x += 34 + 6.4 * len(words)

    def line(self, points, colour, width=2.0, dash=""):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<polyline points="{path}" class="l-{colour}" fill="none" '
                          f'stroke-width="{width}"{dash}/>')

    def dot(self, x, y, colour, radius=3.0):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" class="{colour}"/>')

    def write(self, path):
        width, height = self.size
        dark = f"@media(prefers-color-scheme:dark){{{style(DARK)}}}"
        path.write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="system-ui,Segoe UI,Helvetica,Arial,sans-serif">\n'
            f"<style>{style(LIGHT)}{dark}</style>\n"
            f'<rect width="{width}" height="{height}" rx="6" class="paper"/>\n'
            + "\n".join(self.parts) + "\n</svg>\n")


def apart(wanted, gap, least, greatest):
    """The positions of labels, in the order of `wanted`, so that none covers another."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    at = [max(least, wanted[i]) for i in order]
    for i in range(1, len(at)):
        at[i] = max(at[i], at[i - 1] + gap)
    if at and at[-1] > greatest:
        at[-1] = greatest
        for i in range(len(at) - 2, -1, -1):
            at[i] = min(at[i], at[i + 1] - gap)
    placed = [0.0] * len(wanted)
    for rank, i in enumerate(order):
        placed[i] = at[rank]
    return placed


def shown_ns(ns):
    for unit, size in (("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.2g} {unit}" if ns < 10 * size else f"{ns / size:.0f} {unit}"
    return f"{ns:.0f} ns"


def shown_count(count):
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if count >= size:
            return f"{count / size:g} {unit}"
    return f"{count:g}"


def in_main_state(rows, weight):
    """The rows of the state that has the most of `weight`."""
    sums = {}
    for row in rows:
        sums[row["state"]] = sums.get(row["state"], 0) + row[weight]
    best = max(sums, key=sums.get)
    return [row for row in rows if row["state"] == best], best


def place(value, low, high, begin, end, log=True):
    if log:
        value, low, high = (math.log10(v) for v in (value, low, high))
    return begin + (value - low) / (high - low) * (end - begin)


def decades(values):
    """The powers of ten from below the least to above the greatest."""
    return [10 ** exponent for exponent in range(math.floor(math.log10(min(values))),
                                                 math.ceil(math.log10(max(values))) + 1)]


class Chart:
    """Axes with lines, each labelled at its right end."""

    def __init__(self, picture, box, x, y, shown_x, shown_y, title, caption, log_y=True):
        self.picture, self.box, self.x, self.y, self.log_y = picture, box, x, y, log_y
        left, top, right, bottom = box
        for value in y:
            at = self.at(x[0], value)[1]
            picture.line([(left, at), (right, at)], "rule", 1)
            picture.text(left - 6, at + 4, shown_y(value), "faint", "end", size=12)
        for value in x:
            picture.text(self.at(value, y[0])[0], bottom + 18, shown_x(value), "faint", "middle", size=12)
        picture.text((left + right) / 2, bottom + 36, caption, "faint", "middle", size=12)
        picture.text(left, top - 12, title, "ink", size=13, weight="600")
        self.ends = []

    def at(self, x, y):
        left, top, right, bottom = self.box
        return (place(x, self.x[0], self.x[-1], left, right),
                place(max(y, self.y[0]), self.y[0], self.y[-1], bottom, top, self.log_y))

    def add(self, name, points, colour, dash=""):
        places = [self.at(*point) for point in sorted(points)]
        self.picture.line(places, colour, 2.6 if colour == "dibs" else 1.6, dash)
        for spot in places:
            self.picture.dot(*spot, colour)
        self.ends.append((name, places[-1], colour))

    def label(self, gap=15):
        right = self.box[2]
        for (name, end, colour), y in zip(self.ends, apart([end[1] for _, end, _ in self.ends], gap,
                                                           self.box[1], self.box[3] + 12)):
            weight = "600" if colour == "dibs" else "400"
            if end[0] < right:  # the line ends inside: its name stands above its last point
                self.picture.text(end[0] - 4, end[1] - 9, name, colour, "end", weight, 12)
                continue
            self.picture.line([end, (right + 14, y)], colour, 0.7)
            self.picture.text(right + 17, y + 4, name, colour, weight=weight, size=12)


def draw_latency(run):
    groups = [f"peers: take and return a slot, {where}" for where in ("one core", "across cores")]
    rows = [[row for row in run["rows"] if row["group"] == group] for group in groups]
    if not all(rows):
        return None
    panels = [in_main_state(found, "samples") for found in rows]
    order = [row["name"] for row in sorted(panels[1][0], key=lambda row: row["p50_ns"])]
    height = 124 + 26 * len(order)
    picture = Picture(910, height, "One client takes a slot and returns it",
                      "Dot: median. Thick: to the 99th percentile. Thin: to the 99.9th. Further left is better. "
                      "The scale is logarithmic.")
    picture.legend(height - 12)
    ticks = decades([row[key] for found, _ in panels for row in found for key in ("p50_ns", "p999_ns")])
    for (found, state), left, title in zip(panels, (200, 565), ("client and server on one core",
                                                                "on two cores")):
        right = left + 315
        picture.text(left, 72, title, "ink", weight="600")
        if state:
            picture.text(right, 72, f"CPUs: {state}", "faint", "end", size=12)
        for tick in ticks:
            x = place(tick, ticks[0], ticks[-1], left, right)
            picture.line([(x, 80), (x, height - 46)], "rule", 1)
            if ticks.index(tick) % 2 == len(ticks) % 2:
                picture.text(x, height - 32, shown_ns(tick), "faint", "middle", size=11)
        for row in found:
            y = 96 + 26 * order.index(row["name"])
            colour = side(row["name"])
            p50, p99, p999 = (place(row[key], ticks[0], ticks[-1], left, right)
                              for key in ("p50_ns", "p99_ns", "p999_ns"))
            picture.line([(p50, y), (p999, y)], colour, 1)
            picture.line([(p50, y), (p99, y)], colour, 4)
            picture.dot(p50, y, colour, 5.5)
            picture.text(p50 - 9, y + 4, shown_ns(row["p50_ns"]), "ink", "end", size=11)
            if left == 200:
                picture.text(146, y + 4, short(row["name"]), colour, "end", size=12,
                             weight="600" if colour == "dibs" else "400")
    return picture


def short(name):
    return {"dibs, as configured by default": "dibs, default", "dibs, clients do not spin": "dibs, no spinning",
            "dibs, quantum 0, clients do not spin": "quantum 0, no spin", "robust mutex and condition": "robust mutex",
            "Redis, BLMOVE and LMOVE": "Redis LMOVE", "Redis, Lua scripts": "Redis Lua",
            "Redis, BRPOP and LPUSH": "Redis BRPOP", "beanstalkd, reserve and release": "beanstalkd",
            "NATS, request and reply": "NATS", "ZeroMQ, REQ and REP": "ZeroMQ",
            "PostgreSQL, SKIP LOCKED": "PostgreSQL"}.get(name, name)


def draw_workers(run):
    rows = [row for row in run.get("workers", []) if row["group"].startswith("workers:")
            and row.get("claims") and "percent_of_ideal" in row]
    if not rows:
        return None
    picture = Picture(900, 430, "Processes on two CPUs that claim a slot, work and release it",
                      "Tasks per second, as a percentage of the same processes that only work. Higher is better.")
    picture.legend(418)
    for left, processes, slots in ((50, 2, 2), (490, 4, 2)):
        chart = Chart(picture, (left, 90, left + 260, 350), [1, 5, 20, 100], [0, 25, 50, 75, 100],
                      lambda us: f"{us} µs", lambda percent: f"{percent} %",
                      f"{processes} processes, {slots} slots", "work of a task", log_y=False)
        points = {}
        for work in (1, 5, 20, 100):
            cell = [row for row in rows if (row["processes"], row["slots"], row["work_us"]) == (processes, slots, work)]
            if cell:
                for row in in_main_state(cell, "rounds")[0]:
                    points.setdefault(row["name"], []).append((work, row["percent_of_ideal"]))
        for name, line in points.items():
            chart.add(short(name), line, side(name), dashes(name))
        chart.label()
    return picture


def draw_throughput(run):
    rows = [row for row in run.get("workers", []) if row["group"].startswith("peers:") and row.get("claims")]
    if not rows:
        return None
    picture = Picture(760, 560, "Clients that take a slot and return it, without work",
                      "Pairs per second of all clients together, on two CPUs, 64 slots. Higher is better. "
                      "Both scales are logarithmic.")
    picture.legend(548)
    clients = sorted({row["processes"] for row in rows})
    chart = Chart(picture, (60, 90, 570, 480), clients, decades([row["tasks_per_second"] for row in rows]),
                  str, shown_count, "pairs per second", "clients, a process each")
    points = {}
    for count in clients:
        for row in in_main_state([row for row in rows if row["processes"] == count], "rounds")[0]:
            points.setdefault(row["name"], []).append((count, row["tasks_per_second"]))
    for name, line in points.items():
        chart.add(short(name), line, side(name), dashes(name))
    chart.label()
    return picture


def draw_growth(run):
    rows = [row for row in run["rows"] if row["group"].endswith("growth, per exchange")]
    if not rows:
        return None
    cost = {row["name"]: row["p50_ns"] for row in in_main_state(rows, "samples")[0]}
    lines = {"more waiting claims": {}, "more slots": {}, "a turn without events": {}}
    for name, ns in cost.items():
        numbers = [int(word) for word in name.replace(",", "").split() if word.isdigit()]
        if name.startswith("a turn"):
            lines["a turn without events"][numbers[0]] = ns
        elif len(numbers) == 2:
            waiting, slots = numbers
            if slots == 1000:
                lines["more waiting claims"][waiting] = ns
            if waiting == 1000:
                lines["more slots"][slots] = ns
    greatest = 250 * math.ceil(max(cost.values()) / 250)
    step = 250 if greatest <= 2000 else 500
    picture = Picture(760, 400, "What a pool shared by 100 accounts costs as it grows",
                      "Median of a release, a claim and the grant of the first that waits, in the scheduler alone. "
                      "1000 of what does not grow.")
    chart = Chart(picture, (60, 90, 560, 330), [100, 1000, 10_000, 100_000, 1_000_000],
                  list(range(0, greatest + step, step)), shown_count, lambda ns: f"{ns}", "nanoseconds",
                  "waiting claims, or slots", log_y=False)
    for name, points in lines.items():
        if points:
            chart.add(name, list(points.items()), "faint" if name.startswith("a turn") else "dibs",
                      "6 3" if name == "more slots" else "")
    chart.label()
    return picture


def main():
    if len(sys.argv) != 3:
        sys.exit("pictures: name a file that scripts/bench --json wrote, and a folder")
    run = json.loads(pathlib.Path(sys.argv[1]).read_text())
    folder = pathlib.Path(sys.argv[2])
    for name, draw in (("latency", draw_latency), ("workers", draw_workers), ("throughput", draw_throughput),
                       ("growth", draw_growth)):
        picture = draw(run)
        if picture is None:
            print(f"pictures: the run has nothing for {name}.svg")
        else:
            picture.write(folder / f"{name}.svg")


main()
