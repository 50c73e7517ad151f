#!/usr/bin/env python3
# tests/tool/unreadable_files.py -- files that cannot be checked: fsck and config check tell of each in
# their document, too, and fsck goes on with the next.
#
#   unreadable_files.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import os
import signal
import subprocess
import sys

from tap import case, expect, expect_equal, main


@case("fsck: one row and one line for each")
def states(place):
    text, none = place.folder / "text", place.folder / "none"
    text.write_text("some words\n")
    said = [f"{none}: No such file or directory", f"{text}: is no state: it is some text",
            f"{place.dibs}: is no state: it is a program"]
    names = [str(none), str(text), str(place.dibs)]
    errors = "".join(f"dibs fsck: {line}\n" for line in said)
    expect_equal(place.run("fsck", *names), (1, "", errors))
    code, out, err = place.run("fsck", "-o", "json", *names)
    expect_equal((code, json.loads(out), err),
                 (1, {"schema": "dibs.fsck/1", "rows": [{"wrong": line} for line in said]}, errors))
    code, out, err = place.run("fsck", "-o", "jsonl", *names)
    expect_equal([json.loads(line)["wrong"] for line in out.splitlines()], said)


@case("config check: a mistake of the file, with no line")
def configurations(place):
    for name, why in ((str(place.dibs), "is no configuration: it is a program"),
                      ("/no/such", "cannot be read: No such file or directory")):
        code, out, err = place.run("config", "check", "-o", "json", name)
        expect_equal((code, json.loads(out)),
                     (1, {"schema": "dibs.config/1", "file": name, "pools": 0, "mistakes": 1,
                          "found": [{"file": name, "line": None, "column": None, "text": why}]}))
        expect_equal(err.removeprefix("dibs config: "), f"{name}: {why}\n")


@case("a pipe is read once, and not waited for where nobody writes")
def pipes(place):
    pipe, good = place.folder / "pipe", place.folder / "good.toml"
    os.mkfifo(pipe)
    good.write_text('[[pool]]\nname = "gpu"\nkind = "counted"\nslots = 1\n')
    expect_equal(place.run("fsck", str(pipe)), (1, "", f"dibs fsck: {pipe}: is no file, as a state is\n"))
    silent = f"{pipe}: cannot be read: is no file, and nothing comes from it\n"
    expect_equal(place.run("config", "check", str(pipe))[0::2], (1, silent))
    daemon = subprocess.run([place.dibsd, "--check-config", pipe], capture_output=True, text=True,
                            check=False)
    expect_equal((daemon.returncode, daemon.stderr), (2, silent))
    for text, code in ((good.read_text(), 0), ("[[pool]]\nname = 7\n", 1)):
        check = subprocess.run([place.dibs, "config", "check", "/dev/stdin"], input=text,
                               capture_output=True, text=True, check=False)
        expect_equal(check.returncode, code)


@case("load and replay wait for who writes to a pipe, say so, and can be ended")
def silent_pipes(place):
    pipe = place.folder / "pipe"
    os.mkfifo(pipe)
    said = f"{pipe}: is a pipe: waiting for who writes to it\n"
    for command in ("load", "replay"):
        child = place.begin(command, pipe)
        expect_equal(child.stderr.readline(), said)
        child.terminate()
        expect_equal(child.wait(timeout=60), -signal.SIGTERM)
    child = place.begin("replay", pipe)
    expect_equal(child.stderr.readline(), said)
    pipe.write_text("# nothing happens\n")
    expect_equal((child.wait(timeout=60), child.stdout.read(), child.stderr.read()), (0, "", ""))


@case("a policy for a pool that is not there is noted, and no mistake")
def noted(place):
    file = place.folder / "policy.toml"
    file.write_text('[[pool]]\nname = "gpu"\nkind = "counted"\nslots = 1\n'
                    '[[policy]]\ndefault = true\npools = ["gup", "gpu"]\n')
    note = (f'{file}: note: [[policy]] names pool "gup", which is not configured here; did you mean '
            '"gpu"?\n')
    expect_equal(place.run("config", "check", str(file))[0::2], (0, note))
    daemon = subprocess.run([place.dibsd, "--check-config", file], capture_output=True, text=True,
                            check=False)
    expect_equal((daemon.returncode, daemon.stderr), (0, note))


@case("accounts that no pool uses, a pool by account without any, and workers that nobody may offer are noted")
def noted_accounts(place):
    file = place.folder / "accounts.toml"
    pool = '[[pool]]\nname = "gpu"\nkind = "counted"\nslots = 1\n'
    file.write_text(pool + '[[account]]\nname = "a"\nrate = 1\n')
    expect_equal(place.run("config", "check", str(file))[0::2],
                 (0, f'{file}: note: [[account]] "a": no pool has order = "account", so accounts change nothing\n'))
    file.write_text(pool + 'order = "account"\n')
    code, _, err = place.run("config", "check", str(file))
    expect_equal(code, 0)
    expect(err.startswith(f'{file}: note: pool "gpu" is ordered by account, and there are no accounts'), err)
    file.write_text(pool + 'order = "account"\n[[account]]\nname = "a"\nrate = 1\n')
    expect_equal(place.run("config", "check", str(file))[0::2], (0, ""))
    file.write_text('socket_mode = "0666"\n[[pool]]\nname = "web"\nkind = "worker"\n')
    expect("no [[policy]] names pool \"web\" in offers" in place.run("config", "check", str(file))[2], "noted")


@case("words that keeper and broker alone use")
def alone(place):
    for option in ("--keep", "--link"):
        ended = subprocess.run([place.dibsd, option, "3"], capture_output=True, text=True,
                               check=False)
        expect_equal(ended.returncode, 1)
        expect_equal(ended.stderr.partition("dibsd: ")[2],
                     f"{option}: descriptor 3 is no socket between keeper and broker, who alone say "
                     "this\n")


if __name__ == "__main__":
    main(sys.argv)
