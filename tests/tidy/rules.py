# tests/tidy/rules.py -- the project's rules as functions from a tree to the places that break them.
#
# A tree is a root folder and the files below it that are ours. A rule returns a list of strings,
# "path:line: what is wrong"; an empty list means that the rule holds. Rules read text only: what
# the compilers can say, they say.
# SPDX-License-Identifier: Apache-2.0
import collections
import pathlib
import re
import shutil
import subprocess

LINES_MAX = 500
LINES_NOTED = 400
ORDERS_ALLOWED = ("broker/core/match/", "broker/core/ledger/")
FOLDER_MAX = 40  # sources
HEADER_MAX = 150  # lines of a header of the core
HEADERS_ALLOWED = {  # one list each
    "broker/core/command_fields.hpp", "broker/core/decision_fields.hpp",
}
PRODUCT = ("shm/", "schemas/", "broker/", "clientlib/", "demo/")

# Longer by right, with the reason.
LINES_ALLOWED = {
    "shm/layout.hpp": "one place declares every shared byte",
    "clientlib/include/dibs/dibs.h": "the reference of the C interface is one file",
    "clientlib/include/dibs/dibs.hpp": "and that of the C++ interface, copied as one file",
    "schemas/journal.fbs": "the vocabulary of journals is one list",
}

# May wait for time itself to pass, with the reason.
SLEEP_ALLOWED = {}

SOURCES = {".c", ".h", ".cpp", ".hpp"}
SLASHED = SOURCES | {".fbs"}
HASHED_NAMES = {"meson.build", "meson_options.txt"}

# What a folder may include from the root, longest folder first. Folders that are not listed
# (tests, benchmarks) may include everything.
LAYERS = [
    ("broker/core/", ("shm/", "broker/core/")),
    ("broker/journal/", ("shm/", "schemas/", "broker/core/", "broker/snapshot/", "broker/journal/",
                         "broker/text/", "broker/config/quantity.hpp")),
    ("broker/ctl/", ("shm/", "schemas/", "broker/", "dibs/", "demo/demo.hpp")),
    ("broker/", ("shm/", "schemas/", "broker/")),
    ("demo/", ("shm/", "demo/", "broker/core/", "broker/journal/", "broker/text/", "broker/config/",
               "broker/ctl/exec_strings.hpp", "broker/ctl/stop_signals.hpp", "dibs/")),
    ("clientlib/", ("shm/", "clientlib/", "dibs/")),
    ("shm/", ("shm/",)),
]
NEVER = [
    ("broker/core/", r'<(chrono|ctime|time\.h|thread|mutex|random|iostream|unistd\.h|sys/.*)>'
                     r'|.*spdlog.*', "the core is pure: no clock, thread, system call, random, log"),
    ("broker/", r'"broker/ctl/.*"', "the command line is above the broker"),
    ("clientlib/", r'.*(spdlog|boost|flatbuffers|schemas)/.*', "libdibs needs libc only"),
    ("shm/", r'.*(spdlog|boost|flatbuffers)/.*', "shm depends on nothing"),
]


class Tree:
    """The files below a root that belong to the project: no builds, no hidden folders but .ci."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.paths = sorted(self._walk(self.root))

    def _walk(self, folder):
        for entry in folder.iterdir():
            name = entry.name
            if entry.is_symlink():
                continue
            if entry.is_dir():
                top = folder == self.root
                if name == ".ci" or not (name[0] == "." or name == "__pycache__" or
                                         (top and re.fullmatch(r"build.*", name))):
                    yield from self._walk(entry)
            elif name[0] != ".":
                yield entry.relative_to(self.root).as_posix()

    def text(self, path):
        return (self.root / path).read_text(errors="replace")

    def lines(self, path):
        return self.text(path).splitlines()

    def sources(self):
        return [path for path in self.paths if pathlib.PurePath(path).suffix in SOURCES]


def is_script(tree, path):
    return pathlib.PurePath(path).suffix in {".py", ".sh"} or tree.text(path).startswith("#!")


def has_head(tree, path):
    """What begins the head comment of this kind of file; None where none is asked for."""
    pure = pathlib.PurePath(path)
    if pure.suffix in SLASHED:
        return ("// ", "/* ")
    if pure.name in HASHED_NAMES or (pure.suffix in {"", ".py", ".sh"} and is_script(tree, path)):
        return ("# ",)
    return None


def heads(tree):
    """Line one (below a shebang) names the file and says what it is; one SPDX line follows."""
    broken = []
    for path in tree.paths:
        starts = has_head(tree, path)
        if starts is None:
            continue
        lines = tree.lines(path)
        first = 1 if lines and lines[0].startswith("#!") else 0
        line = lines[first] if len(lines) > first else ""
        if not any(line.startswith(f"{start}{path} -- ") for start in starts):
            broken.append(f"{path}:{first + 1}: does not begin with '{starts[0]}{path} -- '")
        licences = [text for text in lines[:60]
                    if re.fullmatch(r"\W*SPDX-License-Identifier: Apache-2\.0\W*", text)]
        if len(licences) != 1:
            broken.append(f"{path}:1: has {len(licences)} SPDX lines near its head, not 1")
    return broken


def layers(tree):
    """Includes go downwards, and are written from the root."""
    broken = []
    for path in tree.sources():
        allowed = next((own for folder, own in LAYERS if path.startswith(folder)), None)
        for number, line in enumerate(tree.lines(path), 1):
            found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if not found:
                continue
            bracket, name = found.groups()
            whole = f"{bracket}{name}{'>' if bracket == '<' else bracket}"
            place = f"{path}:{number}"
            for folder, pattern, why in NEVER:
                inside_ctl = folder == "broker/" and path.startswith("broker/ctl/")
                if path.startswith(folder) and not inside_ctl and re.fullmatch(pattern, whole):
                    broken.append(f"{place}: includes {whole}: {why}")
            if bracket == "<":
                continue
            if allowed is not None and not name.startswith(allowed):
                broken.append(f"{place}: includes {whole} against the layers")
            elif not from_root(tree, name):
                broken.append(f"{place}: {whole} is not a path from the root")
    return broken


def from_root(tree, name):
    return (name.endswith("_generated.h") or (tree.root / name).is_file() or
            (tree.root / "clientlib" / name).is_file() or
            (tree.root / "clientlib/include" / name).is_file())


def orders(tree):
    """What orders a pool is asked behind the matcher's hooks, and in none of the rules."""
    return [f"{path}:{number}: asks what orders a pool" for path in tree.sources()
            if path.startswith("broker/core/") and not path.startswith(ORDERS_ALLOWED)
            for number, line in enumerate(tree.lines(path), 1) if re.search(r"\bby_(account|priority)\(", line)]


def headers(tree):
    """No header of the core declares more than HEADER_MAX lines: neither comments, includes nor closing braces count."""
    found = []
    for path in tree.sources():
        if path.startswith("broker/core/") and path.endswith(".hpp") and path not in HEADERS_ALLOWED:
            count = sum(1 for line in tree.lines(path) if not re.match(r"\s*(//|#|$|\};?$|(public|private):$)", line))
            if count > HEADER_MAX:
                found.append(f"{path}:{count}: declares more than {HEADER_MAX} lines")
    return found


def lengths(tree):
    """No source is longer than LINES_MAX lines."""
    return [f"{path}:{count}: longer than {LINES_MAX} lines" for path, count in long_sources(tree)
            if count > LINES_MAX and path not in LINES_ALLOWED]


def folders(tree):
    """No folder of the product has more than FOLDER_MAX sources."""
    counts = collections.Counter(str(pathlib.PurePath(path).parent) for path in tree.sources()
                                 if path.startswith(PRODUCT))
    return [f"{folder}:{count}: more than {FOLDER_MAX} sources" for folder, count in sorted(counts.items())
            if count > FOLDER_MAX]


def long_sources(tree):
    """The sources above LINES_NOTED, with their length: to be looked at, not yet wrong."""
    for path in tree.paths:
        if has_head(tree, path) is not None:
            count = len(tree.lines(path))
            if count > LINES_NOTED:
                yield path, count


def names(tree):
    """No file is called after a drawer."""
    drawer = re.compile(r"(^|[_.-])(utils?|helpers?|managers?|info|data|misc|common)([_.-]|$)")
    return [f"{path}:1: is named after a drawer, not after what is in it" for path in tree.paths
            if drawer.search(pathlib.PurePath(path).name.lower())]


def machine_paths(tree):
    """No text names a place on the machine where it was written."""
    places = "|".join(("work", "tmp/" + "w", "home", "root"))
    pattern = re.compile(rf"(?<![\w.}})/~])/({places})/")
    return [f"{path}:{number}: names a place on one machine" for path in tree.paths
            for number, line in enumerate(tree.lines(path), 1) if pattern.search(line)]


def sleeps(tree):
    """Tests wait for conditions, never for time; sleep(0) only gives way."""
    pattern = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\((?!0\))")
    return [f"{path}:{number}: sleeps in place of a condition" for path in tree.paths
            if path.startswith("tests/") and not path.startswith("tests/tidy/")
            and path not in SLEEP_ALLOWED
            for number, line in enumerate(tree.lines(path), 1) if pattern.search(line)]


def references(tree):
    """Documents name only what is there."""
    tops = "shm|broker|demo|clientlib|schemas|benchmarks|tests|docs|scripts|packaging"
    pattern = re.compile(rf"`((?:{tops})/[\w./-]*)`|\]\(([\w./-]+)\)")
    broken = []
    for path in tree.paths:
        if not path.endswith(".md"):
            continue
        for number, line in enumerate(tree.lines(path), 1):
            for named, linked in pattern.findall(line):
                place = tree.root / named if named else (tree.root / path).parent / linked
                if not place.exists():
                    broken.append(f"{path}:{number}: names {named or linked}, which is not there")
    return broken


def code_map(tree):
    """Each function of ARCHITECTURE's code map is in a file of its row."""
    row = re.compile(r"^\|[^|]+\|((?: `[\w./-]+`,?)+) \|([^|]*)\|$")
    broken = []
    for number, line in enumerate(tree.lines("ARCHITECTURE.md"), 1) if "ARCHITECTURE.md" in tree.paths else ():
        found = row.match(line)
        if found is None:
            continue
        named = re.findall(r"`([\w./-]+)`", found[1])
        files = [name if "/" in name else f"{named[0].rpartition('/')[0]}/{name}" for name in named]
        words = {word for file in files if file in tree.paths
                 for text in tree.lines(file) for word in re.findall(r"\w+", text)}
        for function in re.findall(r"`(\w+(?:::\w+)*)", found[2]):
            if not files[0].endswith("/") and function.rpartition("::")[2] not in words:
                broken.append(f"ARCHITECTURE.md:{number}: {function} is not in {', '.join(files)}")
    return broken


def leftovers(tree):
    """Nothing is left for later inside the code."""
    pattern = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
    return [f"{path}:{number}: leaves work in a comment" for path in tree.paths
            if has_head(tree, path) is not None
            for number, line in enumerate(tree.lines(path), 1) if pattern.search(line)]


def formatter():
    """clang-format of version 14, or None: another version formats differently."""
    for name in ("clang-format-14", "clang-format"):
        path = shutil.which(name)
        if path and "version 14." in subprocess.run([path, "--version"], capture_output=True,
                                                    text=True, check=True).stdout:
            return path
    return None


def formatting(tree):
    """Every source is as clang-format 14 would write it."""
    sources = tree.sources()
    if not sources:
        return []
    run = subprocess.run([formatter(), "--dry-run", "--Werror", *sources], cwd=tree.root,
                         capture_output=True, text=True, check=False)
    found = re.findall(r"^(.+?):(\d+):\d+: error", run.stderr, re.MULTILINE)
    broken = [f"{path}:{line}: is not formatted" for path, line in dict(found).items()]
    if run.returncode != 0 and not broken:
        broken.append(f".clang-format:1: {run.stderr.strip()}")
    return broken


def patches(tree):
    """Every planted bug can be planted, and the case that is to see it exists."""
    cases = {".".join(case) for path in tree.sources() if path.startswith("tests/")
             for case in re.findall(r"^TEST\w*\(\s*(\w+),\s*(\w+)\)", tree.text(path), re.MULTILINE)}
    cases |= {"Scenario." + re.sub(r"\W", "_", pathlib.PurePath(path).stem)
              for path in tree.paths if path.startswith("tests/scenarios/")}
    broken = []
    for path in tree.paths:
        if not path.endswith(".patch"):
            continue
        run = subprocess.run(["patch", "-p1", "--fuzz=2", "--dry-run", "-i", path], cwd=tree.root,
                             capture_output=True, text=True, check=False)
        if run.returncode != 0:
            broken.append(f"{path}:1: does not apply")
        for number, line in enumerate(tree.lines(path), 1):
            case = re.fullmatch(r"# case: (\w+\.\w+)", line)
            if case and case[1] not in cases:
                broken.append(f"{path}:{number}: there is no {case[1]}")
    return broken


RULES = [heads, layers, orders, headers, lengths, folders, names, machine_paths, sleeps, references, code_map, leftovers,
         formatting, patches]
