# scripts/tour/drawing.py -- demo.svg: how long a claim takes beside what it compares with, and what
# the slots did over time.
# SPDX-License-Identifier: Apache-2.0
import math
from html import escape

WIDTH, LEFT, RIGHT = 900, 215, 30
COLUMNS = 300  # at most
INK, SOFT, GRID = "#24292f", "#57606a", "#d8dee4"
STATES = (("leased", "#2da44e"), ("reserved", "#bf8700"), ("recovering", "#8250df"),
          ("unknown", "#cf222e"), ("parked", "#1b7c83"), ("absent", "#6e7781"), ("idle", "#d0d7de"))


def text(x, y, words, size=13, anchor="start", fill=INK, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{fill}" font-weight="{weight}">{escape(words)}</text>')


def shown(ns):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"


def latencies(times, top):
    """A row each: a bar from p50 to p99.9 on a logarithmic scale."""
    values = [value for _, quantiles, _ in times for value in quantiles]
    low = math.floor(math.log10(max(min(values), 1)))
    high = max(math.ceil(math.log10(max(values))), low + 1)
    span = WIDTH - LEFT - RIGHT

    def at(ns):
        return LEFT + (math.log10(max(ns, 1)) - low) / (high - low) * span

    bottom = top + 36 + 34 * len(times)
    parts = [text(20, top, "One claim, and what it compares with", 17, weight="600"),
             text(WIDTH - RIGHT, top, "p50 ● ─── p99 ─── p99.9, logarithmic", 12, "end", SOFT)]
    for power in range(low, high + 1):
        x = at(10 ** power)
        parts.append(f'<line x1="{x:.1f}" y1="{top + 14}" x2="{x:.1f}" y2="{bottom - 8}" '
                     f'stroke="{GRID}"/>')
        parts.append(text(x, bottom + 8, shown(10 ** power), 11, "middle", SOFT))
    for number, (name, (middle, late, latest), ours) in enumerate(times):
        y = top + 34 + 34 * number
        fill = "#0969da" if ours else "#8c959f"
        parts.append(text(LEFT - 12, y + 5, name, 13, "end", weight="600" if ours else "normal"))
        for start, end, height in ((middle, late, 12), (late, latest, 4)):
            width = max(at(end) - at(start), 1)
            parts.append(f'<rect x="{at(start):.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" '
                         f'height="{height}" rx="2" fill="{fill}" opacity="0.55"/>')
        parts.append(f'<circle cx="{at(middle):.1f}" cy="{y}" r="6" fill="{fill}"/>')
        parts.append(text(at(middle), y - 10, shown(middle), 11, "middle", fill, "600"))
    return parts, bottom + 24


def steps(points):
    """Each value holds until the next one comes."""
    return [points[0]] + [corner for (_, before), (x, after) in zip(points, points[1:])
                          for corner in ((x, before), (x, after))]


def slots(samples, incidents, total, top):
    """What state how many slots were in, and what happened when."""
    height, span = 170, WIDTH - LEFT - RIGHT
    end = max(samples[-1][0], 0.001)
    columns = samples[::len(samples) // COLUMNS + 1]

    def x(seconds):
        return LEFT + seconds / end * span

    parts = [text(20, top, "The slots of pool \"work\"", 17, weight="600")]
    base = top + 20 + height
    below = [0] * len(columns)
    for name, fill in STATES:
        counts = [getattr(counters, name) for _, counters in columns]
        if not any(counts):
            continue
        above = [low + count for low, count in zip(below, counts)]
        edge = steps([(x(when), base - high / total * height)
                      for (when, _), high in zip(columns, above)])
        back = steps([(x(when), base - low / total * height)
                      for (when, _), low in zip(columns, below)])
        points = " ".join(f"{px:.1f},{py:.1f}" for px, py in edge + back[::-1])
        parts.append(f'<polygon points="{points}" fill="{fill}"/>')
        share = sum(counts) / (total * len(counts))
        row = sum(part.count("class=\"key\"") for part in parts)
        y = top + 40 + 24 * row
        parts.append(f'<rect class="key" x="20" y="{y - 11}" width="13" height="13" rx="3" '
                     f'fill="{fill}"/>' + text(40, y, f"{name}, {share:.0%}", 12, fill=SOFT))
        below = above
    for number, (when, name) in enumerate(incidents, 1):
        parts.append(f'<line x1="{x(when):.1f}" y1="{base - height}" x2="{x(when):.1f}" '
                     f'y2="{base + 6}" stroke="{INK}" stroke-dasharray="3 3"/>')
        parts.append(f'<circle cx="{x(when):.1f}" cy="{base + 15}" r="9" fill="{INK}"/>')
        parts.append(text(x(when), base + 19, str(number), 11, "middle", "white", "600"))
        column, line = (number - 1) % 2, (number - 1) // 2
        parts.append(text(LEFT + column * 340, base + 46 + 19 * line, f"{number}  {name}", 12,
                          fill=SOFT))
    parts.append(text(LEFT, base - height - 4, "0 s", 11, "start", SOFT))
    parts.append(text(LEFT + span, base - height - 4, f"{end:.0f} s", 11, "end", SOFT))
    return parts, base + 46 + 19 * ((len(incidents) + 1) // 2)


def draw(path, times, samples, incidents, total, headline):
    parts, bottom = latencies(times, 76)
    more, bottom = slots(samples, incidents, total, bottom + 34)
    height = bottom + 10
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
             f'width="{WIDTH}" height="{height:.0f}" '
             'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">',
             f'<rect width="{WIDTH}" height="{height:.0f}" rx="10" fill="white"/>',
             text(20, 38, headline, 15, fill=SOFT)] + parts + more + ["</svg>"]
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")
