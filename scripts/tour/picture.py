# scripts/tour/picture.py -- the tour as it goes on: a picture that is drawn over itself on a terminal,
# plain lines elsewhere.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import shutil
import sys
import textwrap
import threading

STATES = (("leased", "█", "32"), ("reserved", "▓", "33"), ("recovering", "▒", "35"),
          ("unknown", "?", "31"), ("idle", "░", "90"))
BARS = " ▁▂▃▄▅▆▇█"


def colour(text, code):
    return f"\x1b[{code}m{text}\x1b[0m"


def cells(counters):
    """A cell for each slot: (letter, colour)."""
    return [(letter, code) for name, letter, code in STATES for _ in range(getattr(counters, name))]


def legend(counters):
    """What the cells stand for: those that there are, leased and idle always."""
    return "  ".join(f"{letter} {getattr(counters, name)} {name}" for name, letter, _ in STATES
                     if getattr(counters, name) != 0 or name in ("leased", "idle"))


def clipped(text, width):
    return text if len(text) <= width else text[:max(width - 1, 0)] + "…"


class Picture:
    def __init__(self, seconds):
        self.lock = threading.Lock()  # one thread tells, another draws
        self.live = sys.stdout.isatty()
        self.seconds = seconds
        self.drawn = 0
        self.history = []

    def __enter__(self):
        if self.live:
            print("\x1b[?25l", end="")
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):  # the terminal may have been closed
            if self.live:
                print("\x1b[?25h", end="", flush=True)

    def tell(self, line):
        """Something that stays; in the terminal's columns, or 80."""
        width = max(shutil.get_terminal_size((80, 24)).columns, 20)
        with self.lock:
            if self.live:
                print(f"\x1b[{self.drawn}F\x1b[J" if self.drawn else "", end="")
                self.drawn = 0
            print(line if len(line) <= width else textwrap.fill(
                line, width, subsequent_indent=" " * 6, replace_whitespace=False,
                break_on_hyphens=False, break_long_words=False), flush=True)

    def draw(self, now, counters, tenants):
        self.history.append(counters)
        if not self.live:
            return
        width = max(shutil.get_terminal_size((80, 24)).columns - 1, 20)
        lines = self.slots(counters, width) + self.flow(counters, width)
        lines += [clipped(self.tenant(tenant), width) for tenant in tenants]
        done = min(max(int(width * now / self.seconds), 0), width)
        lines.append(colour("━" * done, "36") + colour("─" * (width - done), "90"))
        with self.lock:
            print((f"\x1b[{self.drawn}F" if self.drawn else "") +
                  "".join(f"\x1b[2K{line}\n" for line in lines), end="", flush=True)
            self.drawn = len(lines)

    @staticmethod
    def slots(counters, width):
        shown = cells(counters)[:(width - 8) // 3]
        text = "  ".join(colour(letter * 2, code)[:-4] + "\x1b[0m" for letter, code in shown)
        words = f"slots   {legend(counters)}"
        more = f"  {counters.queued} waiting"
        words += more if len(words) + len(more) <= width else ""
        return [clipped(words, width), "        " + text]

    def flow(self, counters, width):
        """How many claims waited, the last moments from left to right."""
        queued = [one.queued for one in self.history[-(width - 8):]]
        most = max(max(queued), 1)
        line = "".join(BARS[round(count / most * (len(BARS) - 1))] for count in queued)
        return ["waiting " + colour(line, "33")]

    @staticmethod
    def tenant(tenant):
        waits = sorted(tenant.waits_ns[-500:])
        if not waits:
            return f"{tenant.name:8}"
        middle, late = waits[len(waits) // 2], waits[int(len(waits) * 0.99)]
        return (f"{tenant.name:8}{len(tenant.waits_ns):6} grants   waits p50 {middle / 1e6:8.2f} ms"
                f"   p99 {late / 1e6:8.2f} ms")
