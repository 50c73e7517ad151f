#!/usr/bin/env python3
# tests/tool/accounts.py -- who pays: accounts made by configuration, by SIGHUP and by the tool; looked
# at, changed, reset and deleted under a broker that serves; kept when that broker is killed.
#
#   accounts.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import re
import os
import signal
import subprocess
import sys

from bad_input import open_to_others, someone_else
from holding import hold, wait_until, waiting
from tap import CASES, Skip, case, expect, expect_equal, main

CASES.clear()  # bad_input's own are run by themselves

POOL = '[[pool]]\nname = "gpu"\nkind = "counted"\nslots = 2\norder = "account"\n'
WORKERS = '[[pool]]\nname = "web"\nkind = "worker"\norder = "account"\n'
SHARES = ('[[account]]\nname = "batch"\nrate = 3\nbalance = 60\n'
          '[[account]]\nname = "web"\nrate = 2\nlabel_limits = { gpu = 4 }\n'
          '[[account]]\nname = "alice"\nrate = [0.5, 0.5]\n')
MINE = f'[[policy]]\nuser = {os.getuid()}\naccount = "batch"\n'


def accounts(place, word="ls", *names):
    code, out, err = place.run("account", word, *names, "-o", "jsonl")
    expect_equal((code, err), (0, ""))
    return {row["account"]: row for row in map(json.loads, out.splitlines())}


def start_told(place, config):
    """A broker whose log is read."""
    (place.folder / "dibsd.toml").write_text(config)
    broker = subprocess.Popen([place.dibsd, "--no-keeper", "--config", place.folder / "dibsd.toml",
                               "--socket", place.socket], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    place.children.append(broker)
    expect_equal(broker.stdout.readline(), f"dibsd: ready on {place.socket}\n")
    return broker


def read_again(place, broker, config, said):
    """Another configuration, by SIGHUP: what the log has said once it has been read."""
    (place.folder / "dibsd.toml").write_text(config)
    broker.send_signal(signal.SIGHUP)
    lines = []
    while not lines or said not in lines[-1]:
        lines.append(broker.stderr.readline())
        expect(lines[-1], "the log ends")
    return lines


@case("ls: shares configured and got, as table, JSON and JSON lines")
def ls(place):
    place.start(POOL + SHARES)
    code, out, err = place.run("account", "ls")
    expect_equal((code, err), (0, ""))
    lines = [line.split() for line in out.splitlines()]
    expect_equal(lines[0], ["ACCOUNT", "RATE", "SHARE", "GOT", "SLOTS", "WAITING", "CLASS",
                            "BALANCE", "USED"])
    expect_equal(lines[1][:7], ["alice", "0.5,0.5", "16.7", "%", "-", "0", "0"])
    expect_equal([line[0] for line in lines[1:]], ["alice", "batch", "web"])
    told = json.loads(place.run("account", "ls", "-o", "json")[1])
    expect_equal(told["schema"], "dibs.accounts/1")
    rows = {row["account"]: row for row in told["rows"]}
    expect_equal([rows[name]["share_ppm"] for name in ("batch", "web", "alice")],
                 [500000, 333333, 166666])
    expect_equal({key: value for key, value in rows["web"].items()
                  if key not in ("balance_micros", "class", "counted_ns")},
                 {"account": "web", "configured": True, "of_file": True,
                  "rate_micros": [2000000, 0, 0, 0, 0], "share_ppm": 333333, "got_ppm": None,
                  "held": 0, "waiting": 0, "used_ns": 0, "running": [0, 0, 0, 0, 0],
                  "charge_max_ns": 60000000000, "fanout_max": 0, "free_tasks_disabled": False,
                  "label_limits": ["gpu=4"]})
    expect(rows["batch"]["balance_micros"][0] >= 60000000, "its balance is what the file says")
    expect_equal({row["schema"] for row in accounts(place).values()}, {"dibs.accounts/1"})


@case("a lease is its account's: what it holds, what waits, and what it got")
def charged(place):
    place.start(POOL + SHARES + MINE)
    hold(place, "gpu:2")
    place.begin("claim", "gpu", "-t", "1h")
    waiting(place, 1)
    row = wait_until(place, ("account", "show", "batch", "-o", "jsonl"),
                     lambda rows: rows[0]["used_ns"] > 0)[0]
    expect_equal((row["held"], row["waiting"], row["running"], row["got_ppm"], row["class"]),
                 (2, 1, [2, 0, 0, 0, 0], 1000000, "P0"))
    lease = json.loads(place.run("ls", "leases", "-o", "jsonl")[1])
    claim = json.loads(place.run("ls", "claims", "-o", "jsonl")[1])
    slot = json.loads(place.run("show", "gpu/0", "-o", "json")[1])
    expect_equal((lease["account"], claim["account"], slot["account"]), ("batch",) * 3)
    expect_equal(place.run("fsck")[0], 0)


@case("who has no account of its own pays as its uid, in the free class")
def own_account(place):
    place.start(POOL)
    hold(place, "gpu")
    name = f"uid:{os.getuid()}"
    row = accounts(place)[name]
    expect_equal((row["configured"], row["held"], row["class"], row["share_ppm"]),
                 (False, 1, "free", None))
    code, out, err = place.run("account", "set", name, "--rate", "1")
    expect_equal((code, err), (0, ""))
    expect_equal(accounts(place)[name]["configured"], True)


@case("SIGHUP: accounts come, change and go; a bad file changes nothing")
def sighup(place):
    broker = start_told(place, POOL + SHARES + MINE)
    hold(place, "gpu")
    place.run("account", "set", "made", "--rate", "1")
    place.run("account", "reset", "web", "--balance", "-7.5")
    said = read_again(place, broker, POOL + '[[account]]\nname = "web"\nrate = -1\n',
                      "the configuration stays as it was")
    expect("dibsd.toml:8:8: rate: must be between 0 and 1000000" in said[-2], said)
    expect_equal(set(accounts(place)), {"batch", "web", "alice", "made"})
    read_again(place, broker, POOL + '[[account]]\nname = "web"\nrate = 4\n[[account]]\n'
               'name = "carol"\nrate = 1\nbalance = 9\n', "has been read again")
    rows = wait_until(place, ("account", "ls", "-o", "jsonl"),
                      lambda rows: any(row["account"] == "carol" for row in rows))
    rows = {row["account"]: row for row in rows}
    # batch is deleted; its name stays as long as its lease does.
    expect_equal({name: row["configured"] for name, row in rows.items()},
                 {"batch": False, "web": True, "carol": True, "made": True})
    expect_equal((rows["web"]["rate_micros"][0], rows["batch"]["held"], rows["batch"]["class"]),
                 (4000000, 1, "free"))
    expect(rows["web"]["balance_micros"][0] < 4 * 60000000, "it kept its balance")
    expect(rows["carol"]["balance_micros"][0] >= 9000000, "the file's is what it begins with")
    expect_equal(rows["made"]["of_file"], False)
    expect_equal(place.run("fsck")[0], 0)


@case("set: makes one, and changes what is named and nothing else")
def set_one(place):
    place.start(POOL + SHARES)
    code, out, err = place.run("account", "set", "new", "--rate", "1,0,0.25", "--balance", "-5,2",
                               "--charge-max", "30s", "--fanout-max", "3", "--label-limit",
                               "gpu=2", "--label-limit", "os=1", "--no-free-tasks", "-o", "json")
    expect_equal((code, err), (0, ""))
    row = json.loads(out)
    expect_equal((row["rate_micros"], row["balance_micros"][1], row["charge_max_ns"],
                  row["fanout_max"], row["label_limits"], row["free_tasks_disabled"],
                  row["of_file"]),
                 ([1000000, 0, 250000, 0, 0], 2000000, 30000000000, 3, ["gpu=2", "os=1"], True,
                  False))
    code, out, err = place.run("account", "set", "new", "--label-limit", "gpu=none", "--free-tasks",
                               "-o", "json")
    expect_equal((code, err), (0, ""))
    row = json.loads(out)
    expect_equal((row["rate_micros"], row["balance_micros"][1], row["charge_max_ns"],
                  row["fanout_max"], row["label_limits"], row["free_tasks_disabled"]),
                 ([1000000, 0, 250000, 0, 0], 2000000, 30000000000, 3, ["os=1"], False))
    expect_equal(accounts(place, "show", "web")["web"]["of_file"], True)
    expect_equal(place.run("account", "set", "web", "-r", "0")[0], 0)
    row = accounts(place, "show", "web")["web"]
    expect_equal((row["of_file"], row["rate_micros"][0], row["label_limits"]),
                 (True, 0, ["gpu=4"]))


@case("reset: the balance, and nothing else; without a number it is 0")
def reset(place):
    place.start(POOL + '[[account]]\nname = "a"\nbalance = [5, 6]\n')
    code, out, err = place.run("account", "reset", "a", "--balance", "0.5,-3", "-o", "json")
    expect_equal((code, err), (0, ""))
    expect_equal(json.loads(out)["balance_micros"], [500000, -3000000, 0, 0, 0])
    expect_equal(json.loads(place.run("account", "reset", "a", "-o", "json")[1])["balance_micros"],
                 [0] * 5)


@case("delete: its lease stays, its claims go on in the free class")
def delete(place):
    place.start(POOL.replace("slots = 2", "slots = 1") + SHARES + MINE)
    holder, _ = hold(place, "gpu")
    waiter = place.begin("claim", "gpu", "-t", "1h", "-o", "json")
    waiting(place, 1)
    code, out, err = place.run("account", "delete", "batch", "-o", "json")
    expect_equal((code, err), (0, ""))
    expect_equal(json.loads(out), {"schema": "dibs.account_delete/1", "account": "batch",
                                   "did": "deleted"})
    row = accounts(place)["batch"]
    expect_equal((row["configured"], row["held"], row["waiting"], row["class"]),
                 (False, 1, 1, "free"))
    expect_equal(place.run("account", "delete", "batch")[0], 4)
    holder.send_signal(signal.SIGTERM)
    expect(waiter.stdout.readline(), "who waited is served")
    expect_equal(accounts(place)["batch"]["running"], [0, 0, 0, 0, 0])
    expect_equal(place.run("fsck")[0], 0)


@case("workers' slots are paid for too")
def with_workers(place):
    place.start(WORKERS + SHARES + MINE)
    place.begin("worker", "web:2", "--lines", "none", "--", "sleep", "600")
    wait_until(place, ("ls", "pools", "-o", "jsonl"), lambda rows: rows[0]["idle"] == 2)
    hold(place, "web")
    row = wait_until(place, ("account", "show", "batch", "-o", "jsonl"),
                     lambda rows: rows[0]["running"] == [1, 0, 0, 0, 0])[0]
    expect_equal(row["held"], 1)


@case("a broker that takes over has the same accounts, with what the tool has said of them")
def takeover(place):
    (place.folder / "dibsd.toml").write_text('log_level = "off"\n' + POOL + SHARES + MINE)
    keeper = subprocess.Popen([place.dibsd, "--config", place.folder / "dibsd.toml", "--socket",
                               place.socket], stdout=subprocess.PIPE, text=True)
    try:
        expect_equal(keeper.stdout.readline(), f"dibsd: ready on {place.socket}\n")
        hold(place, "gpu:2")
        place.run("account", "set", "made", "--rate", "7")
        place.run("account", "set", "web", "--rate", "9")
        place.run("account", "delete", "alice")
        before = json.loads(place.run("status", "-o", "json")[1])["pid"]
        used = accounts(place)["batch"]["used_ns"]
        os.kill(before, signal.SIGKILL)
        while True:
            code, out, _ = place.run("status", "-o", "json")
            if code == 0 and json.loads(out)["pid"] != before:
                break
        after = accounts(place)
        expect_equal({name: row["rate_micros"][0] for name, row in after.items()},
                     {"batch": 3000000, "made": 7000000, "web": 9000000})
        expect_equal((after["batch"]["held"], after["batch"]["running"]), (2, [2, 0, 0, 0, 0]))
        expect(after["batch"]["used_ns"] >= used, "what it got is not forgotten")
        place.begin("claim", "gpu", "-t", "1h")
        waiting(place, 1)
        expect_equal(accounts(place)["batch"]["waiting"], 1)
        expect_equal(place.run("fsck")[0], 0)
    finally:
        place.close()  # so that nobody holds anything
        keeper.terminate()
        keeper.wait()
        keeper.stdout.close()


@case("bad words: what is wrong, and what would be right")
def bad_words(place):
    place.start(POOL + SHARES)
    many = "1,2,3,4,5,6"
    for words, code, said in (
            (["lst"], 2, 'there is no "lst" of an account; did you mean ls? There are ls, show, '
                         "set, reset and delete"),
            (["ls", "web"], 2, 'dibs account ls: "web" is a word too many\nSee dibs account ls --help.'),
            (["set"], 2, "set needs the name of one account"),
            (["show", "web", "--rate", "1"], 2, "show changes no configuration; set does"),
            (["delete", "web", "--balance", "1"], 2, "--balance is for set and reset"),
            (["set", "web", "--free-tasks", "--no-free-tasks"], 2,
             "--free-tasks and --no-free-tasks are opposites"),
            (["set", "web", "--rate", "fast"], 2, '--rate: "fast" is not a number with at most six '
                                                  "decimals, such as 3 or 0.5"),
            # A script's empty variable: not a balance of nothing, nor a change that changes nothing.
            (["reset", "web", "--balance", ""], 2,
             '--balance: "" is not a number with at most six decimals, such as 3 or 0.5'),
            (["set", "web", "--rate", ""], 2,
             '--rate: "" is not a number with at most six decimals, such as 3 or 0.5'),
            (["set", "web", "--fanout-max", ""], 2,
             'dibs account set: --fanout-max: "" is not a number from 0 to 65535\n'
             'See dibs account set --help.'),
            (["set", "web", "--rate", "0.0000001"], 2,
             '--rate: "0.0000001" is not a number with at most six decimals, such as 3 or 0.5'),
            (["set", "web", "--rate", "-1"], 2, "--rate: -1 is not between 0 and 1000000"),
            (["set", "web", "--rate", "1000001"], 2, "--rate: 1000001 is not between 0 and 1000000"),
            (["set", "web", "--balance", many], 2,
             "--balance: 6 numbers; there are five classes, P0 to P4"),
            (["reset", "web", "--balance", many], 2,
             "--balance: 6 numbers; there are five classes, P0 to P4"),
            (["set", "web", "--fanout-max", "70000"], 2,
             'dibs account set: --fanout-max: "70000" is not a number from 0 to 65535\n'
             'See dibs account set --help.'),
            (["set", "web", "--label-limit", "gpu"], 2,
             '--label-limit: "gpu" is not KEY=SLOTS, such as gpu=2, or KEY=none'),
            (["set", "web", "--rate", "1000000", "--charge-max", "300h"], 6,
             "account web: account 'web': a rate, or what it may save up, is too large"),
            (["set", "x" * 64], 2, 'NAME: the name, "xxxxxxxxxxxxxxxx...", has 64 bytes; 63 is the most'),
            (["set", "a\tb"], 2, 'NAME: "a?b" has control characters'),
            (["sett", "web"], 2, 'there is no "sett" of an account; did you mean set? There are ls, show, '
                                 "set, reset and delete"),
            (["show", "wbe"], 4, 'there is no account "wbe"; did you mean "web"? There are: alice, '
                                 "batch, web"),
            (["reset", "nobody"], 4, 'there is no account "nobody"; there are: alice, batch, web'),
            (["delete", "nobody"], 4, 'there is no account "nobody"; there are: alice, batch, web')):
        got = place.run("account", *words)
        said = said if said.startswith("dibs ") else f"dibs account: {said}"
        expect_equal((got[0], got[2].split("; there are: ")[0].split(" There are: ")[0]),
                     (code, f"{said}\n".split("; there are: ")[0]
                      .split(" There are: ")[0]))
        expect_equal(got[1], "")
    expect_equal(set(accounts(place)), {"batch", "web", "alice"})
    expect_equal(place.run("account", "delete", "web")[0], 0)
    expect_equal(place.run("account", "delete", "batch")[0], 0)
    expect_equal(place.run("account", "delete", "alice")[0], 0)
    expect_equal(place.run("account", "show", "alice"),
                 (4, "", 'dibs account: there is no account "alice"; none is configured\n'))


@case("help of each word: what it takes, and nothing that others take")
def help_of_words(place):
    own = {"ls": [], "show": [], "reset": ["--balance"], "delete": [],
           "set": ["--rate", "--balance", "--charge-max", "--fanout-max", "--label-limit",
                   "--free-tasks", "--no-free-tasks"]}
    for word, options in own.items():
        code, out, err = place.run("account", word, "--help")
        expect_equal((code, err), (0, ""))
        expect(f"Usage: dibs account {word} [OPTIONS]" in out, out)
        found = re.findall(r"^  (?:-\w,)?(--[a-z-]+)", out, re.M)
        expect_equal(found, ["--help", *options, "--output", "--socket"])
    expect("--rate" in place.run("account", "--help")[1], "all of them")


@case("a configuration's mistakes have their places")
def bad_file(place):
    file = place.folder / "bad.toml"
    file.write_text(POOL + '[[account]]\nname = "a"\nrate = [-1]\nbalance = [1, 2, 3, 4, 5, 6]\n'
                    'label_limits = { gpu = "x" }\nspeed = 3\n[[policy]]\ndefault = true\n'
                    'account = "other"\n')
    code, _, err = place.run("config", "check", str(file))
    expect_equal((code, err.replace(str(file), "F").splitlines()),
                 (1, ["F:8:9: rate: must be between 0 and 1000000",
                      "F:9:27: balance: has 6 numbers; there are five classes, P0 to P4",
                      "F:10:24: label_limits.gpu: must be a number of slots",
                      'F:11:1: unknown key "speed" in an account',
                      'F:14:11: account: no [[account]] is named "other"']))


@case("another user sees names and shares, not balances, and changes nothing: 5")
def another_user(place):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    place.start('socket_mode = "0666"\n' + POOL + SHARES)
    open_to_others(place)
    code, out, err = place.run("account", "show", "web", "-o", "json", **someone_else())
    expect_equal((code, err), (0, ""))
    row = json.loads(out)
    expect_equal((row["share_ppm"], row["rate_micros"], row["balance_micros"], row["class"],
                  row["label_limits"]), (333333, None, None, None, None))
    for words in (["set", "web", "--rate", "9"], ["set", "theirs"], ["reset", "web"],
                  ["delete", "web"], ["delete", "nobody"]):
        code, out, err = place.run("account", *words, **someone_else())
        expect_equal((code, out), (5, ""))
        expect(err.startswith(f"dibs account: account {words[1]}: only administrators may: "), err)
    expect_equal({name: row["rate_micros"][0] for name, row in accounts(place).items()},
                 {"alice": 500000, "batch": 3000000, "web": 2000000})


if __name__ == "__main__":
    main(sys.argv)
