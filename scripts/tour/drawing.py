# scripts/tour/drawing.py -- demo.svg: how long a claim takes beside what it compares with; what the
# slots did over time, how many claims waited, and what happened when.
# SPDX-License-Identifier: Apache-2.0
import math
from html import escape

WIDTH, LEFT, RIGHT = 900, 215, 30
BESIDE = 150  # right of the times: how they compare
COLUMNS = 300  # at most
INK, SOFT, GRID = "#24292f", "#57606a", "#d8dee4"
STATES = (("leased", "#2da44e"), ("reserved", "#bf8700"), ("recovering", "#8250df"),
          ("unknown", "#cf222e"), ("idle", "#eaeef2"))
WAITING, OURS = "#fb8f44", "#0969da"


def text(x, y, words, size=13, anchor="start", fill=INK, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{fill}" font-weight="{weight}">{escape(words)}</text>')


def over_lines(x, y, words, fill):
    """A bold name with its middle at x, and no line through it."""
    behind = text(x, y, words, 11, "middle", "white", "600").replace(
        "<text ", '<text stroke="white" stroke-width="5" ')
    return behind + text(x, y, words, 11, "middle", fill, "600")


def shown(ns):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"


def beside(value, ours):
    """How many times as long as a claim, in words as short as the number is sure."""
    times = value / ours
    return f"{times:.1f} times" if times < 9.5 else f"{float(f'{times:.2g}'):,.0f} times"


def latencies(times, top):
    """A row each: a bar from p50 to p99.9 on a logarithmic scale, and how it compares."""
    times = [one for one in times if one.p50 is not None]
    values = [value for one in times for value in (one.p50, one.p99, one.p999) if value is not None]
    low = math.floor(math.log10(max(min(values), 1)))
    high = max(math.ceil(math.log10(max(values))), low + 1)
    span = WIDTH - LEFT - BESIDE
    ours = next(one for one in times if one.ours)

    def at(ns):
        return LEFT + (math.log10(max(ns, 1)) - low) / (high - low) * span

    bottom = top + 52 + 34 * len(times)
    cold = max(times, key=lambda one: one.p50)
    parts = [text(20, top, f"A claim takes {shown(ours.p50)}, a cold Python {shown(cold.p50)}", 17,
                  weight="600"),
             text(LEFT, top + 20, "p50 ● ━━ p99 ── p99.9 (of enough times); logarithmic", 11,
                  fill=SOFT),
             text(WIDTH - RIGHT, top + 20, "as long as a claim", 11, "end", SOFT)]
    for power in range(low, high + 1):
        x = at(10 ** power)
        parts.append(f'<line x1="{x:.1f}" y1="{top + 30}" x2="{x:.1f}" y2="{bottom - 8}" '
                     f'stroke="{GRID}"/>')
        parts.append(text(x, bottom + 8, shown(10 ** power), 11, "middle", SOFT))
    x = at(ours.p50)
    parts.append(f'<line x1="{x:.1f}" y1="{top + 30}" x2="{x:.1f}" y2="{bottom - 8}" '
                 f'stroke="{OURS}" stroke-width="1.5" stroke-dasharray="2 3"/>')
    for number, one in enumerate(times):
        y = top + 52 + 34 * number
        fill = OURS if one.ours else "#8c959f"
        weight = "600" if one.ours else "normal"
        parts.append(text(LEFT - 12, y, one.name, 13, "end", weight=weight))
        parts.append(text(LEFT - 12, y + 13, f"of {one.count:,}", 10, "end", SOFT))
        for start, end, height in ((one.p50, one.p99, 12), (one.p99, one.p999, 4)):
            if end is None:
                break
            width = max(at(end) - at(start), 1)
            parts.append(f'<rect x="{at(start):.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" '
                         f'height="{height}" rx="2" fill="{fill}" opacity="0.55"/>')
        parts.append(f'<circle cx="{at(one.p50):.1f}" cy="{y}" r="6" fill="{fill}"/>')
        parts.append(over_lines(at(one.p50), y - 10, shown(one.p50), fill))
        if not one.ours:
            parts.append(text(WIDTH - RIGHT, y + 5, beside(one.p50, ours.p50), 13, "end",
                              weight="600"))
    return parts, bottom + 24


def steps(points, x, y):
    """A path along the tops: each value holds until the next one comes."""
    (when, value), path = points[0], ""
    path = f"M{x(when):.1f} {y(value):.1f}"
    for when, after in points[1:]:
        if after != value:
            path += f"H{x(when):.1f}V{y(after):.1f}"
            value = after
    return f"{path}H{x(points[-1][0]):.1f}"


def area(points, x, y, fill):
    """From the values down to 0."""
    return (f'<path d="{steps(points, x, y)}V{y(0):.1f}H{x(points[0][0]):.1f}Z" '
            f'fill="{fill}"/>')


def scale(name, marks, y):
    """The numbers of an axis that goes up, a line for each, and what they count."""
    parts = []
    for mark in marks:
        parts.append(f'<line x1="{LEFT}" y1="{y(mark):.1f}" x2="{WIDTH - RIGHT}" '
                     f'y2="{y(mark):.1f}" stroke="{GRID}"/>')
        parts.append(text(LEFT - 8, y(mark) + 4, str(mark), 11, "end", SOFT))
    middle = (y(marks[0]) + y(marks[-1])) / 2
    parts.append(f'<text transform="translate({LEFT - 34} {middle:.1f}) rotate(-90)" '
                 f'font-size="12" text-anchor="middle" fill="{SOFT}">{escape(name)}</text>')
    return parts


def rows_of(labels):
    """For (place, width) from left to right: a row each in which none touches another."""
    ends, rows = [], []
    for place, width in labels:
        row = next((number for number, end in enumerate(ends) if end < place - width / 2),
                   len(ends))
        ends[row:row + 1] = [place + width / 2 + 8]
        rows.append(row)
    return rows


def marks(incidents, x, top, bottom):
    """A line for each incident's instant, and above it its number and short name."""
    names = [f"{number} {short}" for number, (_, short, _, _) in enumerate(incidents, 1)]
    labels = [(min(max(x(when), LEFT + 50), WIDTH - RIGHT - 50), 6.6 * len(name) + 6)
              for (when, _, _, _), name in zip(incidents, names)]
    rows = rows_of(labels)
    lines, words = [], []
    for (when, _, _, _), name, (place, _), row in zip(incidents, names, labels, rows):
        fill = "#cf222e" if "broker" in name else INK
        y = top + 12 + 16 * row
        lines.append(f'<line x1="{x(when):.1f}" y1="{y + 4:.1f}" x2="{x(when):.1f}" '
                     f'y2="{bottom:.1f}" stroke="{fill}" stroke-width="1.5" '
                     'stroke-dasharray="4 3"/>')
        words.append(over_lines(place, y, name, fill))
    return lines + words, 16 * (max(rows, default=-1) + 1)


def seconds_of(end):
    """Round numbers of seconds for the axis below."""
    step = next(step for step in (1, 2, 5, 10, 20, 60, 120, 600, 3600) if end / step <= 12)
    return range(0, int(end) + 1, step)


def slots(samples, incidents, total, note, top):
    """What state the slots were in, how many claims waited, and what happened when."""
    height, low, span = 150, 60, WIDTH - LEFT - RIGHT
    end = max(samples[-1][0], 0.001)
    columns = samples[::len(samples) // COLUMNS + 1]

    def x(seconds):
        return LEFT + seconds / end * span

    _, room = marks(incidents, x, 0, 0)
    ceiling = top + 26 + room  # of the slots
    base = ceiling + height
    ground = base + 24 + low   # of the claims that wait

    def y(count):
        return base - count / total * height

    most = max(max(counters.queued for _, counters in columns), 1)

    def y_waiting(count):
        return ground - count / most * low

    parts = [text(20, top, f"What the {total} slots did, and what was done to them", 17,
                  weight="600"),
             text(WIDTH - RIGHT, top, note, 12, "end", SOFT)]
    counted = [(name, fill, [getattr(counters, name) for _, counters in columns])
               for name, fill in STATES]
    seen = [one for one in counted if any(one[2])]
    sums = [[sum(counts) for counts in zip(*(counts for _, _, counts in seen[:number + 1]))]
            for number in range(len(seen))]
    for (_, fill, _), heights in reversed(list(zip(seen, sums))):  # the lowest is drawn last
        parts.append(area([(when, high) for (when, _), high in zip(columns, heights)], x, y, fill))
    waiting = [(when, counters.queued) for when, counters in columns]
    parts.append(area(waiting, x, y_waiting, WAITING))
    parts += scale("slots", range(0, total + 1, max(total // 4, 1)), y)
    parts += scale("waiting", (0, most), y_waiting)
    shares = [sum(counts) / (total * len(counts)) for _, _, counts in seen]
    keys = [(fill, f"{name}, " + (f"{share:.0%}" if share >= 0.01 else "< 1%"))
            for (name, fill, _), share in zip(seen, shares)]
    for row, (fill, words) in enumerate(keys):
        parts.append(f'<rect x="20" y="{ceiling + 9 + 24 * row}" width="13" height="13" rx="3" '
                     f'fill="{fill}"/>' + text(40, ceiling + 20 + 24 * row, words, 12, fill=SOFT))
    parts.append(f'<rect x="20" y="{ground - low + 9}" width="13" height="13" rx="3" '
                 f'fill="{WAITING}"/>' + text(40, ground - low + 20, "claims that wait", 12,
                                              fill=SOFT))
    for when in seconds_of(end):
        parts.append(text(x(when), ground + 18, f"{when} s", 11, "middle", SOFT))
    struck, _ = marks(incidents, x, top + 8, ground)
    parts += struck
    for number, (when, _, name, words) in enumerate(incidents, 1):
        line = ground + 48 + 20 * (number - 1)
        parts.append(text(20, line, f"{number}  {name}", 12, weight="600"))
        parts.append(text(395, line, words, 12, fill=SOFT))
    return parts, ground + 48 + 20 * len(incidents)


def draw(path, times, samples, incidents, total, headline, note):
    """`times`: as tour.Times; `incidents`: (when, short name, name, what became of it)."""
    parts, bottom = latencies(times, 100)
    more, bottom = slots(samples, incidents, total, note, bottom + 34)
    height = bottom + 6
    title, below = headline
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
             f'width="{WIDTH}" height="{height:.0f}" '
             'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">',
             f'<rect width="{WIDTH}" height="{height:.0f}" rx="10" fill="white"/>',
             text(20, 38, title, 21, weight="700"),
             text(20, 62, below, 14, fill=SOFT)] + parts + more + ["</svg>"]
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")
