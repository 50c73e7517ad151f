#!/usr/bin/env python3
# tests/tool/start_limits.py -- dibsd under limits from tight to wide: it says which one is in its
# way and ends, or it is ready and serves. It is never ready and serves nobody.
#
#   start_limits.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re
import resource
import shutil
import socket
import subprocess
import sys

from tap import Skip, case, expect, expect_equal, main

POOL = '[[pool]]\nname = "gpu"\nkind = "counted"\nslots = 2\n'
MIB = 1 << 20
USER = 54321  # who has no other process
KEEPING = (["--no-keeper"], ["--no-standby"], [])


def told_ready(manager):
    """Reads until it is, or there is nothing to read."""
    with manager:
        try:
            while "READY=1" not in manager.recv(4096).decode().splitlines():
                pass
            return True
        except BlockingIOError:
            return False


def start(place, kind, limit, words, **options):
    """Standard error of a dibsd that could not begin; None of one that has served."""
    config = place.folder / "dibsd.toml"
    config.write_text(POOL)
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notices = place.folder / "notices"
    notices.unlink(missing_ok=True)
    manager.bind(str(notices))
    notices.chmod(0o666)

    def limited():
        resource.setrlimit(kind, (limit, limit))
    broker = subprocess.Popen([options.pop("program", place.dibsd), "--config", config, "--socket", place.socket,
                               *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              preexec_fn=limited, env=os.environ | {"NOTIFY_SOCKET": str(notices)}, **options)
    place.children.append(broker)
    line = broker.stdout.readline()
    if line == "":
        said = broker.stderr.read()
        expect_equal(broker.wait(timeout=60), 1)
        expect("serving on" not in said, said)
        manager.setblocking(False)
        expect(not told_ready(manager), said)
        return said
    expect_equal(line, f"dibsd: ready on {place.socket}\n")
    expect("gpu" in place.run("ls", "pools", **options)[1], "listed")
    expect_equal(place.run("exec", "gpu", "--", "true", **options), (0, "", ""))
    expect(told_ready(manager), "told")
    broker.terminate()
    broker.stderr.read()
    expect_equal(broker.wait(timeout=60), 0)
    return None


def walk(place, kind, limits, sentence, **options):
    """Those that were refused, each in one sentence with the limit's name and number."""
    refused = []
    for limit in limits:
        for words in KEEPING:
            said = start(place, kind, limit, words, **options)
            if said is None:
                continue
            refused.append((limit, words))
            lines = [line for line in said.splitlines() if line.startswith("dibsd: ")]
            expect_equal(len(lines), 1)
            expect(re.fullmatch(sentence.replace("NUMBER", str(limit)), lines[0]), lines[0])
    return refused


@case("descriptors: 64 are enough for one client, 63 are refused")
def descriptors(place):
    refused = walk(place, resource.RLIMIT_NOFILE, (8, 24, 32, 63, 64),
                   r"dibsd: a broker needs 64 descriptors at least: Too many open files: the limit of descriptors "
                   r"\(RLIMIT_NOFILE\) is NUMBER, which is too little: raise it \(ulimit -n, or LimitNOFILE= of the service\)")
    expect_equal(refused, [(limit, words) for limit in (8, 24, 32, 63) for words in KEEPING])


@case("address space: of mappings, of malloc, of a thread's stack")
def address_space(place):
    refused = walk(place, resource.RLIMIT_AS, range(16 * MIB, 72 * MIB, 4 * MIB),
                   r"dibsd: (mmap|malloc|pthread_create): Cannot allocate memory: the limit of address space "
                   r"\(RLIMIT_AS\) is NUMBER bytes, which is too little: raise it \(ulimit -v, or LimitAS= of the service\)")
    for words in KEEPING:
        expect(4 <= sum(one[1] == words for one in refused) < 14, refused)


@case("data: of mappings, of malloc, of a thread's stack; nothing else is blamed")
def data(place):
    refused = walk(place, resource.RLIMIT_DATA, range(2 * MIB, 24 * MIB, 2 * MIB),
                   r"dibsd: (mmap|malloc|pthread_create): Cannot allocate memory: the limit of data "
                   r"\(RLIMIT_DATA\) is NUMBER bytes, which is too little: raise it \(ulimit -d, or LimitDATA= of the service\)")
    for words in KEEPING:
        expect(sum(one[1] == words for one in refused) >= 3, refused)


@case("locked memory: none is needed")
def locked(place):
    expect_equal(walk(place, resource.RLIMIT_MEMLOCK, (0,), ""), [])


@case("processes and threads: two alone, three with a keeper")
def processes(place):
    if os.geteuid() != 0:
        raise Skip("only root can become a user without other processes")
    place.folder.chmod(0o777)
    program = pathlib.Path(shutil.copy(place.dibsd, place.folder / "dibsd"))
    program.chmod(0o755)
    refused = walk(place, resource.RLIMIT_NPROC, (1, 2, 3, 4, 8),
                   r"dibsd: (posix_spawn of /proc/self/exe|pthread_create): Resource temporarily unavailable: the limit "
                   r"of the user's processes and threads \(RLIMIT_NPROC\) is NUMBER, which is too little: raise it "
                   r"\(ulimit -u, or LimitNPROC= of the service\)(; or .*pids.max.*)?",
                   program=program, user=USER, group=USER, extra_groups=[])
    expect_equal(refused, [(1, words) for words in KEEPING] + [(2, words) for words in KEEPING[1:]])


if __name__ == "__main__":
    main(sys.argv)
