#!/usr/bin/env python3
# tests/tool/snapshots.py -- the state as a file: written while others claim, and read again.
#
#   snapshots.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import subprocess
import sys

from holding import POOLS, hold, waiting
from tap import Skip, case, expect, expect_equal, main


def dumped(place, name, *options):
    file = place.folder / name
    expect_equal(place.run("dump", *options, str(file)), (0, "", ""))
    return file.read_bytes()


@case("dump: a live state, with who holds and who waits; the same state gives the same bytes")
def dump(place):
    place.start(POOLS)
    hold(place, "gpu:2")
    place.begin("claim", "gpu")
    waiting(place, 1)
    first = dumped(place, "one.snap")
    expect_equal(first[4:8], b"DSNP")
    expect_equal(dumped(place, "two.snap"), first)
    expect(not (place.folder / "two.snap.draft").exists(), "a draft stays")


@case("dump: to standard output")
def dump_to_standard_output(place):
    place.start(POOLS)
    got = subprocess.run([place.dibs, "dump"], stdout=subprocess.PIPE, check=True,
                         env=place.environment(), timeout=60).stdout
    expect_equal(got, dumped(place, "one.snap"))


@case("dump: of a state that was left behind, the bytes of the live one")
def dump_of_a_file(place):
    broker = place.start(POOLS)
    hold(place, "gpu")
    live = dumped(place, "live.snap")
    memory = next(f"/proc/{broker.pid}/fd/{fd}" for fd in os.listdir(f"/proc/{broker.pid}/fd")
                  if "dibs-state" in os.readlink(f"/proc/{broker.pid}/fd/{fd}"))
    expect_equal(dumped(place, "left.snap", "--state", memory), live)


@case("dump: says what it cannot do, and leaves no file")
def dump_fails(place):
    file = place.folder / "none.snap"
    code, out, err = place.run("dump", str(file))
    expect_equal((code, out), (3, ""))
    code, _, err = place.run("dump", "--state", "/no/such/state", str(file))
    expect_equal((code, err), (1, "dibs dump: /no/such/state: No such file or directory\n"))
    text = place.folder / "text"
    text.write_text("x" * 5000)
    expect_equal(place.run("dump", "--state", str(text), str(file))[2],
                 f"dibs dump: {text}: is no state: it is some text\n")
    place.start(POOLS)
    expect_equal(place.run("dump", "/no/folder/file")[2],
                 "dibs dump: /no/folder/file: No such file or directory\n")
    expect_equal(place.run("dump", "a", "b"), (2, "", "dibs dump: one FILE is enough\n"))
    expect(not file.exists(), "a file was left")


def start_kept(place, config, *options, log=None):
    file = place.folder / "kept.toml"
    file.write_text(f'log_level = "{"off" if log is None else "info"}"\n' + config)
    keeper = subprocess.Popen([place.dibsd, "--config", file, "--socket", place.socket, *options],
                              stdout=subprocess.PIPE, stderr=log, text=True)
    place.children.append(keeper)
    expect_equal(keeper.stdout.readline(), f"dibsd: ready on {place.socket}\n")
    return keeper


def stop(keeper):
    """SIGTERM reaches the broker through its keeper."""
    keeper.terminate()
    expect_equal(keeper.wait(timeout=60), 0)


def fence(place):
    return place.run("exec", "gpu", "--", "sh", "-c", "echo $DIBS_FENCE")[1].strip()


@case("load: into an idle broker, which goes on where the snapshot stood")
def load(place):
    with open(place.folder / "log", "w", encoding="utf-8") as log:
        keeper = start_kept(place, POOLS, log=log)
    expect_equal([fence(place), fence(place)], ["1", "2"])
    file = str(place.folder / "two.snap")
    expect_equal(place.run("dump", file), (0, "", ""))
    expect_equal(fence(place), "3")
    code, out, err = place.run("load", file, "-o", "json")
    expect_equal((code, err), (0, ""))
    expect_equal(out, f'{{"schema":"dibs.load/1","file":"{file}","epoch":2}}\n')
    expect_equal(fence(place), "3")
    expect_equal(place.run("fsck")[0], 0)
    stop(keeper)
    said = (place.folder / "log").read_text(encoding="utf-8")
    expect("a snapshot was loaded: the next broker goes on from it" in said, said)
    expect("the broker has made way: starting the next one" in said, said)
    expect("died" not in said, said)


@case("load: what its processes held is free, and who waited is gone")
def load_ends_sessions(place):
    keeper = start_kept(place, POOLS)
    holder, _ = hold(place, "gpu:2")
    waiter = place.begin("claim", "gpu")
    waiting(place, 1)
    file = str(place.folder / "held.snap")
    expect_equal(place.run("dump", file), (0, "", ""))
    code, _, err = place.run("load", file)
    expect_equal((code, err), (1, f"dibs load: {file}: clients are attached: dibs ls clients shows "
                                  "them; load when nobody is there\n"))
    for child in (waiter, holder):
        child.terminate()
        child.wait(timeout=60)
    while place.run("ls", "clients", "-o", "jsonl")[1]:
        pass
    expect_equal(place.run("load", file), (0, f"The broker goes on from {file}, epoch 2.\n", ""))
    expect_equal(place.run("ls", "leases", "-o", "jsonl"), (0, "", ""))
    expect_equal(place.run("ls", "claims", "-o", "jsonl"), (0, "", ""))
    expect_equal(fence(place), "2")
    stop(keeper)


@case("load: a broker that is started for it")
def load_at_start(place):
    broker = place.start(POOLS)
    expect_equal(fence(place), "1")
    file = place.folder / "one.snap"
    expect_equal(place.run("dump", str(file)), (0, "", ""))
    broker.kill()
    broker.wait()
    keeper = start_kept(place, POOLS, "--load", file)
    expect_equal(fence(place), "2")
    stop(keeper)


IN_C = """
import ctypes, os, sys
library, call, path = sys.argv[1:]
library = ctypes.CDLL(library)
library.dibs_strerror.restype = ctypes.c_char_p
fd = os.open(path, os.O_RDWR | os.O_CREAT)
print(library.dibs_strerror(getattr(library, call)(None, fd)).decode())
"""


@case("dump, load: the same in C")
def in_c(place):
    library = pathlib.Path(place.dibs).resolve().parents[2] / "clientlib/libdibs.so.0"

    def call(name, path):
        ended = subprocess.run([sys.executable, "-c", IN_C, library, name, path], text=True,
                               capture_output=True, env=place.environment(), timeout=60,
                               check=False)
        if any(word in ended.stderr for word in ("runtime does not come first", "undefined symbol")):
            raise Skip("a library with a sanitizer does not load into Python")
        return ended.stdout.strip()

    file = place.folder / "c.snap"
    expect_equal(call("dibs_dump", file), "no broker listens at the socket or answers in time")
    keeper = start_kept(place, POOLS)
    expect_equal(fence(place), "1")
    expect_equal(call("dibs_dump", file), "success")
    expect_equal(dumped(place, "tool.snap"), file.read_bytes())
    expect_equal(fence(place), "2")
    expect_equal(call("dibs_load", file), "success")
    expect_equal(fence(place), "2")
    file.write_bytes(file.read_bytes()[:-8])
    expect(call("dibs_load", file) != "success", "a cut snapshot was taken")
    expect_equal(fence(place), "3")
    stop(keeper)


@case("load: what is no snapshot is refused with its place, and nothing changes")
def load_fails(place):
    place.start(POOLS)
    file = place.folder / "good.snap"
    expect_equal(place.run("dump", str(file)), (0, "", ""))
    code, _, err = place.run("load", str(file))
    expect_equal((code, err), (1, f"dibs load: {file}: this broker has no keeper to start its "
                                  "successor: stop it, and start dibsd with --load FILE\n"))
    cut = place.folder / "cut.snap"
    cut.write_bytes(file.read_bytes()[:-20])
    ended = subprocess.run([place.dibsd, "--no-keeper", "--load", cut, "--socket",
                            str(place.folder / "other")], capture_output=True, text=True,
                           timeout=60, check=False)
    expect_equal((ended.returncode, ended.stderr),
                 (1, f"dibsd: {cut}: it is cut short, or its tables are broken\n"))
    expect_equal(place.run("load", "/no/such/file"),
                 (1, "", "dibs load: /no/such/file: No such file or directory\n"))


@case("load: a live broker refuses what is wrong, and goes on")
def load_refused(place):
    keeper = start_kept(place, POOLS)
    expect_equal(fence(place), "1")
    wrong = place.folder / "wrong.snap"
    wrong.write_text("this is no snapshot, but it is long enough for one")
    expect_equal(place.run("load", str(wrong)),
                 (1, "", f"dibs load: {wrong}: is no snapshot: it is some text\n"))
    expect_equal(fence(place), "2")
    stop(keeper)


@case("load: tables larger than the broker is configured for are refused, and nothing changes")
def load_bounded(place):
    small = place.folder / "small.toml"
    small.write_text(POOLS)
    larger = place.folder / "larger.snap"
    for limit, here in (("claims = 70000", "65536"), ('arena = "8MiB"', "4MiB")):
        config = POOLS + f"[limits]\n{limit}\n"
        broker = place.start(config)
        expect_equal(place.run("dump", str(larger)), (0, "", ""))
        broker.kill()
        broker.wait()
        told = limit.replace('"', "")
        why = (f"{larger}: it is of a broker with limits.{told}, this one has {here}: raise it in "
               "[limits] of the configuration, and start dibsd again")
        for options in ([], ["--no-keeper"]):
            ended = subprocess.run([place.dibsd, *options, "--config", small, "--load", larger,
                                    "--socket", str(place.folder / "other")], capture_output=True,
                                   text=True, timeout=60, check=False)
            expect_equal((ended.returncode, ended.stdout, ended.stderr), (1, "", f"dibsd: {why}\n"))
        keeper = start_kept(place, POOLS)
        expect_equal(fence(place), "1")
        expect_equal(place.run("load", str(larger)), (1, "", f"dibs load: {why}\n"))
        expect_equal(fence(place), "2")
        stop(keeper)
        keeper = start_kept(place, config, "--load", larger)
        expect_equal(fence(place), "1")
        expect_equal(place.run("load", str(larger))[0], 0)
        stop(keeper)


@case("load: at the start, what does not end, or is too large for a snapshot, fills no memory")
def load_endless(place):
    sparse = place.folder / "sparse.snap"
    sparse.touch()
    os.truncate(sparse, 1 << 40)
    for file, why in (("/dev/zero", "does not end within 64MiB"), (sparse, "is larger than 2GiB")):
        ended = subprocess.run([place.dibsd, "--load", file, "--socket", str(place.folder / "other")],
                               capture_output=True, text=True, timeout=60, check=False)
        expect_equal((ended.returncode, ended.stdout, ended.stderr), (1, "", f"dibsd: {file}: {why}\n"))


if __name__ == "__main__":
    main(sys.argv)
