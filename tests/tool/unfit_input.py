#!/usr/bin/env python3
# tests/tool/unfit_input.py -- what is there and does not fit: files of another kind, a worker that
# its pool never takes, a pool without workers, options in another place, many mistakes at once.
#
#   unfit_input.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import os
import re
import subprocess
import sys

from holding import POOLS
from tap import case, expect, expect_equal, main


@case("a pool of workers without a worker says so, at the end and to who waits at a terminal")
def nobody_offers(place):
    place.start(POOLS)
    none = "no worker offers one (dibs worker web -- COMMAND does)"
    told = 'dibs exec: did not get a slot of pool "web": '
    expect_equal(place.run("exec", "web", "--timeout", "1ms", "--", "true"),
                 (124, "", f"{told}the time of 1ms has passed; {none}\n"))
    code, out, err = place.run("exec", "web", "--now", "--", "true")
    expect_equal((code, out), (75, ""))
    expect(f"; {none}" in err, err)
    leader, follower = os.openpty()
    waiter = subprocess.Popen([place.dibs, "exec", "web", "--", "true"], stderr=follower,
                              env=place.environment())
    os.close(follower)
    said = ""
    while not said.endswith("\n"):
        said += os.read(leader, 4096).decode()
    expect_equal(said, f'dibs: waiting for a slot of pool "web": {none}\r\n')
    waiter.terminate()
    waiter.wait()
    os.close(leader)


@case("a worker that can never be taken ends at once; durations as people write them")
def hopeless_worker(place):
    place.start(POOLS + '[[pool]]\nname = "tight"\nkind = "worker"\nattributes_max = 4\n')
    told = ('dibs worker: the attributes of a slot take {} bytes, pool "{}" takes at most {}: set '
            "attributes_max = {} or more for the pool in dibsd's configuration, and start dibsd "
            "again\n")
    expect_equal(place.run("worker", "web", "--lines", "none", "--attribute", "port=8080", "--",
                           "sleep", "1000"), (6, "", told.format(10, "web", 0, 10)))
    # Of a process id all that is known before there is one is that it has a digit.
    code, out, err = place.run("worker", "tight", "--lines", "none", "--attribute", "p={pid}", "--",
                               "sleep", "1000")
    expect_equal((code, out), (6, ""))
    expect(re.fullmatch(re.escape(told).replace(r"\{\}", r"(\w+)"), err), err)
    code, out, err = place.run("worker", "web", "--lines", "none", "--backoff", "1600ms",
                               "--tries-max", "1", "--name", "w", "--", "false")
    expect_equal((code, out), (1, ""))
    expect("dibs worker: w-0: starting again in 1.6s\n" in err, err)


@case("what is no state, journal, snapshot or configuration is told what it is: 1")
def other_files(place):
    place.start(POOLS)
    snapshot, journal = place.folder / "state.dump", place.folder / "j.jsonl"
    config, words = place.folder / "dibsd.toml", place.folder / "words"
    expect_equal(place.run("dump", str(snapshot))[0], 0)
    journal.write_text("# nothing yet\n")
    words.write_text("some words\n")
    a_snapshot = "it is a snapshot, which dibs load reads"
    a_journal = "it seems to be a journal, which dibs replay reads"
    a_config = "it seems to be a configuration, which dibs config check reads"
    for command, wanted, file, kind in (
            (["fsck"], "state", snapshot, a_snapshot), (["fsck"], "state", config, a_config),
            (["fsck"], "state", journal, a_journal), (["fsck"], "state", words, "it is some text"),
            (["fsck"], "state", place.dibs, "it is a program"),
            (["dump", "--state"], "state", snapshot, a_snapshot),
            (["replay"], "journal", snapshot, a_snapshot),
            (["replay", "--check"], "journal", config, a_config),
            (["replay"], "journal", place.dibs, "it is a program"),
            (["load"], "snapshot", config, a_config), (["load"], "snapshot", words, "it is some text"),
            (["config", "check"], "configuration", snapshot, a_snapshot)):
        target = [] if command[0] != "dump" else [str(place.folder / "never")]
        expect_equal(place.run(*command, str(file), *target),
                     (1, "", f"dibs {command[0]}: {file}: is no {wanted}: {kind}\n"))
    expect_equal(place.run("replay", "/no/such"),
                 (1, "", "dibs replay: /no/such: No such file or directory\n"))
    expect_equal(place.run("dump", "/no/such/x"),
                 (1, "", "dibs dump: /no/such/x: No such file or directory\n"))


@case("-V, and --socket before the subcommand; a count of nothing; what an option wants")
def in_front(place):
    place.start(POOLS)
    expect_equal(place.run("-V"), place.run("version"))
    expect_equal(place.run("--version"), place.run("version"))
    elsewhere = {"DIBS_SOCKET": "/no/such"}
    wanted = place.run("ls", "pools")[:2]
    for words in (["--socket", place.socket], [f"--socket={place.socket}"]):
        expect_equal(place.run(*words, "ls", "pools", environment=elsewhere)[:2], wanted)
    expect_equal(place.run("--sokcet", "x", "ls"),
                 (2, "", "dibs: there is no option --sokcet before the subcommand; --socket PATH "
                         "and --version may stand there\n`dibs --help` lists the rest.\n"))
    for words in (["--socket"], ["--socket", place.socket], [f"--socket={place.socket}"]):
        expect_equal(place.run(*words),
                     (2, "", "dibs: --socket needs a PATH, and a subcommand behind it\n"))
    for words in (["ls", "pools", "--pool"], ["exec", "gpu", "--env"], ["claim", "gpu", "--timeout"]):
        expect_equal(place.run(*words)[2].splitlines()[0],
                     f"dibs {words[0]}: option {words[-1]} needs a value")
    for option in ("--socket", "--config", "--load", "--check-config", "--state-fd"):
        ended = subprocess.run([place.dibsd, option], capture_output=True, text=True, timeout=60,
                               check=False)
        expect_equal((ended.returncode, ended.stdout, ended.stderr),
                     (2, "", f"dibsd: option {option} needs a value\nSee dibsd --help.\n"))
    for option, form in (("--env", "VARIABLE=ATTRIBUTE"), ("--option", "KEY=VALUE"),
                         ("--create", "NAME=N")):
        expect_equal(place.run("exec", "gpu", option, "FOO", "--", "true"),
                     (2, "", f"dibs exec: {option} FOO: write {form}\n"))
        expect(re.search(rf"{option} {form}", place.run("exec", "--help")[1]), form)
    expect_equal(place.run("exec", "x", "--create", "y=2", "--", "true"),
                 (2, "", 'dibs exec: --create y=2: the command is for pool "x", which is not there: '
                         "name the same pool twice\n"))
    expect_equal(place.run("exec", "y", "--create", "y=2", "--create", "z=0", "--", "true")[0], 2)
    expect_equal([json.loads(line)["pool"] for line in
                  place.run("ls", "pools", "-o", "jsonl")[1].splitlines()], ["gpu", "web"])


@case("config check: every mistake, with its line and column")
def every_mistake(place):
    file = place.folder / "bad.toml"
    file.write_text('socket_mode = "0999"\n[[pool]]\nname = x\nkind="countd"\nslots=-2\nfoo=1\n')
    code, _, err = place.run("config", "check", str(file))
    expect_equal(code, 1)
    expect_equal(sorted(line.removeprefix(f"{file}:").split(":")[0] for line in err.splitlines()),
                 ["1", "3", "4", "5", "6"])


@case("load, replay: a device that never ends is said to, and fills no memory: 1")
def endless(place):
    place.start(POOLS)
    for command in ("load", "replay"):
        expect_equal(place.run(command, "/dev/zero"),
                     (1, "", f"dibs {command}: /dev/zero: does not end within 64MiB\n"))
    sparse = place.folder / "sparse.snap"
    sparse.touch()
    os.truncate(sparse, 1 << 40)
    expect_equal(place.run("load", str(sparse)), (1, "", f"dibs load: {sparse}: is larger than 2GiB\n"))


if __name__ == "__main__":
    main(sys.argv)
