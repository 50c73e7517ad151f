#!/usr/bin/env python3
# tests/tool/bad_input.py -- words that nobody knows, brokers that are not there or not ours,
# other users, narrow terminals, closed pipes: each message and exit code.
#
#   bad_input.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading

from holding import POOLS, hold, squeezed, steady, waiting
from tap import Skip, case, expect, expect_equal, main


@case("unknown subcommands, options, kinds and pools name the nearest, and what there is")
def unknown(place):
    place.start(POOLS)
    expect_equal(place.run("sttaus"),
                 (2, "", 'dibs: there is no subcommand "sttaus"; did you mean status?\n'
                         "`dibs --help` lists them.\n"))
    for word in ("xyzzy", "relaese"):  # what changes something is not offered
        expect_equal(place.run(word)[2], f'dibs: there is no subcommand "{word}"\n`dibs --help` lists them.\n')
    expect_equal(place.run("ls", "pools", "--outptu", "json"),
                 (2, "", "dibs ls: there is no option --outptu; did you mean --output?\n"
                         "See dibs ls --help.\n"))
    expect_equal(place.run("ls", "clinets"),
                 (2, "", 'dibs ls: "clinets" cannot be listed; did you mean clients? There are '
                         "pools, sets, types, slots, workers, entries, claims, leases and clients\n"))
    expect_equal(place.run("ls", "xyzzy"),
                 (2, "", 'dibs ls: "xyzzy" cannot be listed; there are pools, sets, types, slots, workers, '
                         "entries, claims, leases and clients\n"))
    expect_equal(place.run("config", "check", "/no/such.toml")[0::2],
                 (1, "/no/such.toml: cannot be read: No such file or directory\n"))
    expect_equal(place.run("demo", "--secnds", "3"),
                 (2, "", "dibs demo: there is no option --secnds; did you mean --seconds?\n"
                         "See dibs demo --help.\n"))
    expect_equal(place.run("status", "-o", "jsno"),
                 (2, "", "dibs status: -o jsno: there are table, json and jsonl; did you mean "
                         "json?\n"))
    for command in (("claim", "gup"), ("snapshot", "gup"), ("show", "gup"), ("drain", "gup"),
                    ("ls", "slots", "-p", "gup"), ("bench", "gup")):
        expect_equal(place.run(*command),
                     (4, "", f'dibs {command[0]}: there is no pool "gup"; did you mean "gpu"? '
                             "There are: gpu, web\n"))
    # An empty name is a script's empty variable: neither all pools nor the whole broker.
    for command in (("drain", ""), ("undrain", "gpu", ""), ("ls", "slots", "-p", ""), ("show", ""),
                    ("account", "set", "", "--rate", "1"), ("account", "show", "")):
        expect_equal(place.run(*command), (2, "", f"dibs {command[0]}: an empty name names nothing\n"))
    expect_equal(json.loads(place.run("status", "-o", "json")[1])["draining"], False)
    expect_equal(place.run("status", "extra"),
                 (2, "", 'dibs status: "extra" is a word too many\nSee dibs status --help.\n'))
    # What is missing, and what it would be.
    expect_equal(place.run("ls"),
                 (2, "", "dibs ls: KIND is required: pools, sets, types, slots, workers, entries, claims, leases or clients\n"
                         "See dibs ls --help.\n"))
    expect_equal(place.run("explain"),
                 (2, "", "dibs explain: CLAIM is required: the claim, such as c12: dibs ls claims shows "
                         "them\nSee dibs explain --help.\n"))
    expect_equal(place.run()[0], 2)


@case("the daemon's own options: the nearest is named")
def daemon(place):
    see = "See dibsd --help.\n"
    for words, said in ((["--soket", "x"], "there is no option --soket; did you mean --socket?"),
                        (["--xyzzy"], "there is no option --xyzzy"),
                        (["--lnk", "3"], "there is no option --lnk"),
                        (["extra"], '"extra" is a word too many')):
        ended = subprocess.run([place.dibsd, *words], capture_output=True, text=True, timeout=60,
                               check=False)
        expect_equal((ended.returncode, ended.stdout, ended.stderr),
                     (2, "", f"dibsd: {said}\n{see}"))
    ended = subprocess.run([place.dibsd, "--version"], capture_output=True, text=True, timeout=60,
                           check=False)
    expect_equal((ended.returncode, ended.stdout, ended.stderr), (0, "dibsd 0.1.0, layout 1\n", ""))


@case("help fits the terminal: 80 columns where there is none")
def help_width(place):
    words = [(place.dibs, "--help"), (place.dibsd, "--help")]
    words += [(place.dibs, name, "--help") for name in ("exec", "worker", "ls", "demo", "claim")]
    for columns, widest in ((None, 80), ("40", 40), ("132", 132)):
        for command in words:
            more = {} if columns is None else {"COLUMNS": columns}
            ended = subprocess.run(command, capture_output=True, text=True, timeout=60,
                                   env=place.environment(**more), check=True)
            wide = [line for line in ended.stdout.splitlines() if len(line) > widest]
            # What is typed is not broken.
            expect_equal([line for line in wide if not re.match(r"  -\S+( \S+)*$", line)], [])


@case("names that name nothing: 4, and where to look; names that cannot be: 2")
def no_such(place):
    place.start(POOLS)
    expect_equal(place.run("show", "c77"),
                 (4, "", "dibs show: there is no claim c77: none has come yet; dibs ls claims shows "
                         "those that wait\n"))
    expect_equal(place.run("show", "l77"),
                 (4, "", "dibs show: there is no lease l77; dibs ls leases shows those that are "
                         "held\n"))
    expect_equal(place.run("show", "s0x7"),
                 (4, "", "dibs show: there is no slot s0x7 that you may see; dibs ls slots -o json "
                         "shows those that are\n"))
    expect_equal(place.run("show", "gpu/9"),
                 (4, "", "dibs show: pool gpu has no slot 9; dibs ls slots --pool gpu shows those "
                         "that are\n"))
    expect_equal(place.run("show", "s9.9"),
                 (4, "", "dibs show: there is no client s9.9; dibs ls clients shows those that "
                         "are\n"))
    expect_equal(place.run("explain", "c77"),
                 (4, "", "dibs explain: there is no claim c77: none has come yet; dibs ls claims "
                         "shows those that wait\n"))
    expect_equal(place.run("show", "gpu/x"),
                 (2, "", 'dibs show: "gpu/x": behind POOL/ stands a slot\'s number, a claim or a lease, such as gpu/0, gpu/c12 or gpu/l12\n'))
    expect_equal(place.run("explain", "gpu"),
                 (2, "", 'dibs explain: "gpu" is no claim, such as c12; dibs ls claims shows '
                         "them\n"))
    expect_equal(place.run("claim", "gpu:x")[0], 2)
    expect_equal(place.run("claim", "gpu", "-t", "soon")[0], 2)


@case("a number without its letter, and one of the wrong kind: 2, with the readings that there are")
def no_kind(place):
    place.start(POOLS)
    hold(place, "gpu:2")
    place.begin("claim", "gpu")
    waiting(place, 1)
    cases = (
        (("show", "2"), '"2" may be the claim c2 or the lease l2: write the one that you mean'),
        (("show", "0x100000000"), '"0x100000000" may be the claim c0x100000000, the lease '
                                  "l0x100000000 or the slot s0x100000000: write the one that you "
                                  "mean"),
        (("show", "4294967296"), '"4294967296" may be the claim c4294967296, the lease '
                                 "l4294967296 or the slot s4294967296: write the one that you mean"),
        (("cancel", "2"), '"2" may be the claim c2 or the lease l2: dibs cancel takes a claim, so '
                          "write c2"),
        (("release", "1"), '"1" may be the claim c1 or the lease l1: dibs release takes a lease, so '
                           "write l1"),
        (("explain", "0x100000000"),
         '"0x100000000" may be the claim c0x100000000, the lease l0x100000000 or the slot '
         "s0x100000000: dibs explain takes a claim, so write c0x100000000"),
        (("cancel", "l1"), '"l1" is a lease, and dibs cancel takes a claim, such as c1, whose lease '
                           "it is"),
        (("renew", "c2"), '"c2" is a claim, and dibs renew takes a lease, such as l2, that '
                          "claim's once it is granted"),
        (("release", "c0x100000000"), '"c0x100000000" is a claim, and dibs release takes a lease; '
                                      "dibs ls leases shows them"),
        (("explain", "l0x100000000"), '"l0x100000000" is a lease, and dibs explain takes a claim; '
                                      "dibs ls claims shows them"),
        *(((word, slot), f'"{slot}" is a slot, and dibs {word} takes a lease; dibs ls slots and dibs ls leases tell '
                         "who has it") for word in ("inspect", "release") for slot in ("gpu/0", "s0x100000000")),
    )
    for command, said in cases:
        expect_equal(place.run(*command), (2, "", f"dibs {command[0]}: {said}\n"))
    expect_equal(len(place.run("ls", "leases", "-o", "jsonl")[1].splitlines()), 1)


@case("labels and accounts that cannot be: 2, and which; an account that nobody has configured: 4")
def terms(place):
    place.start("".join(f'[[account]]\nname = "{name}"\n' for name in ("research", "web")) + POOLS)
    long = "x" * 64
    cases = (
        (("claim", "gpu", "-l", "a", "-l", ""), 2, "--label: label 2 is empty"),
        (("claim", "gpu", "--prefer", long), 2, '--prefer: label 1, "xxxxxxxxxxxxxxxx...", has 64 '
                                                "bytes; 63 is the most"),
        (("exec", "gpu", "-l", long, "--", "true"), 2, '--label: label 1, "xxxxxxxxxxxxxxxx...", has '
                                                       "64 bytes; 63 is the most"),
        (("claim", "gpu", *(["-l", "a"] * 33)), 2, "--label: 33 are too many; 32 is the most"),
        (("exec", "gpu", *(["-o", "a=b"] * 17), "--", "true"), 2,
         "--option: 17 are too many; 16 is the most"),
        (("claim", "gpu", "--account", ""), 2, "--account: the name is empty"),
        (("worker", "web", "--label", "", "--", "true"), 2, "--label: label 1 is empty"),
        (("pull", "web", "w=a,,b"), 2, "w=a,,b: label 2 is empty"),
        (("report", "idle", "web", "w", "-l", ""), 2, "--label: label 1 is empty"),
        (("claim", "gpu", "--account", "reserch"), 4,
         'there is no account "reserch"; did you mean "research"? There are: research, web'),
        (("exec", "gpu", "--account", "typo", "--", "true"), 4,
         'there is no account "typo"; there are: research, web'),
    )
    for command, code, said in cases:
        expect_equal(place.run(*command), (code, "", f"dibs {command[0]}: {said}\n"))
    expect_equal(place.run("exec", "gpu", "--account", "web", "--", "true"), (0, "", ""))
    expect_equal(place.run("exec", "gpu", "--account", "uid:7", "--", "true"), (0, "", ""))


@case("a socket's path that is empty stands for no other: 2")
def no_path(place):
    place.start(POOLS)
    for command in (("status", "--socket", ""), ("--socket", "", "status"),
                    ("exec", "gpu", "--socket", "", "--", "true")):
        code, out, err = place.run(*command)
        expect_equal((code, out), (2, ""))
        expect(err.splitlines()[0].endswith("--socket: a path is needed, and none is there"), err)
    ended = subprocess.run([place.dibsd, "--socket", ""], capture_output=True, text=True, timeout=60,
                           check=False)
    expect_equal((ended.returncode, ended.stderr.splitlines()[0]),
                 (2, "dibsd: --socket: a path is needed, and none is there"))


@case("no broker: 3, where it looked and what to do")
def no_broker(place):
    hint = "start dibsd, or name its socket with --socket or DIBS_SOCKET\n"
    for command in (("status",), ("ls", "pools"), ("release", "l1")):
        expect_equal(place.run(*command),
                     (3, "", f"dibs {command[0]}: no broker answers at {place.socket} (No such "
                             f"file or directory): {hint}"))
    code, out, err = place.run("claim", "gpu")
    expect_equal((code, out), (3, ""))
    expect(err.startswith(f"dibs claim: no broker answers at {place.socket} "), err)
    broker = place.start(POOLS)
    broker.kill()
    broker.wait()
    expect_equal(place.run("status"),
                 (3, "", f"dibs status: no broker answers at {place.socket} (Connection refused): "
                         f"{hint}"))


FAREWELL = 0x4557455241464944
ADMIN_WELCOME = 0x4d434c574d444944


def answer_once(place, packet):
    """Stands where a broker would and answers the first greeting with the packet."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(place.socket)
    listener.listen(1)

    def serve():
        connection, _ = listener.accept()
        connection.recv(4096)
        connection.send(packet)
        connection.recv(4096)
        connection.close()
        listener.close()
        os.unlink(place.socket)
    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def farewell(code, layout, text):
    return struct.pack("<QIIII200s", FAREWELL, code, layout, 1, len(text), text.encode())


@case("an old tool or library and a new broker, and the reverse, say both versions: 3")
def versions(place):
    thread = answer_once(place, struct.pack("<QII24sQII", ADMIN_WELCOME, 2, 1, b"0.9.0", 1, 0, 0))
    expect_equal(place.run("status"),
                 (3, "", "dibs status: dibs 0.1.0 speaks admin version 1, dibsd 0.9.0 version 2: "
                         "bring the older one up to date\n"))
    thread.join()
    thread = answer_once(place, farewell(2, 1, "a Hello was expected; 48 bytes of something else "
                                               "came"))
    expect_equal(place.run("status"),
                 (3, "", f"dibs status: dibs 0.1.0 and the broker at {place.socket} (layout 1) do "
                         "not understand each other: a Hello was expected; 48 bytes of something "
                         "else came; bring the older one up to date\n"))
    thread.join()
    said = ("the client speaks layout 1, this broker layout 7: one of the two must be brought up "
            "to date")
    thread = answer_once(place, farewell(1, 7, said))
    expect_equal(place.run("claim", "gpu"),
                 (3, "", f"dibs claim: no session with the broker at {place.socket}: {said}\n"))
    thread.join()


@case("who listens and is no broker is told from one: 3")
def no_dibs_broker(place):
    thread = answer_once(place, b"hello")
    expect_equal(place.run("status"),
                 (3, "", f"dibs status: {place.socket}: who listens there is no dibs broker\n"))
    thread.join()


def open_to_others(place):
    place.folder.chmod(0o755)


def someone_else():
    return {"user": 65534, "group": 65534, "extra_groups": []}


@case("no permission on the socket: 5, and which group")
def no_permission(place):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    place.start(POOLS)
    open_to_others(place)
    os.chown(place.socket, 0, 0)
    os.chmod(place.socket, 0o660)
    closed = (f"you may not connect to {place.socket}: it is for user root and group root (mode "
              "0660); ask for a dibsd that runs with a group of its own\n")
    expect_equal(place.run("version", **someone_else()), (0, f"dibs 0.1.0, layout 1\n{closed}", ""))
    for command in (("status",), ("claim", "gpu")):
        code, out, err = place.run(*command, **someone_else())
        expect_equal((code, out), (5, ""))
        expect_equal(err, f"dibs {command[0]}: you may not connect to {place.socket}: it is for "
                          "user root and group root (mode 0660); ask for a dibsd that runs "
                          "with a group of its own\n")
    os.chown(place.socket, 0, 65534)
    group = (f"you may not connect to {place.socket}: it is for user root and group nogroup (mode "
             "0660); ask to be added to the group nogroup\n")
    for command in (("status",), ("ls", "pools"), ("claim", "gpu"), ("events",), ("record", "/dev/null"),
                    ("exec", "gpu", "--", "true"), ("worker", "web", "--", "true")):
        expect_equal(place.run(*command, **someone_else() | {"group": 65533}),
                     (5, "", f"dibs {command[0]}: {group}"))
    os.chmod(place.socket, 0o600)
    expect("it is for user root alone (mode 0600)" in place.run("status", **someone_else())[2],
           "a socket for one user says so")


def not_now(place):
    """What another user is told who gets no slot at once."""
    while True:
        code, out, err = place.run("exec", "gpu", "--now", "--", "true", **someone_else())
        expect_equal((code, out), (75, ""))
        if "did not answer at once" not in err:  # a late broker: the library knows no holder
            return err


@case("another user sees account and age, and ends nothing: 5")
def another_user(place):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    place.start('socket_mode = "0666"\n' + POOLS)
    open_to_others(place)
    hold(place, "gpu:2")
    place.begin("claim", "gpu")
    waiting(place, 1)
    code, out, err = place.run("ls", "leases", "-o", "json", **someone_else())
    expect_equal((code, err), (0, ""))
    expect_equal(steady(out),
                 '{"schema":"dibs.leases/1","rows":[{"number":null,"id":null,"pool":"gpu",'
                 '"state":null,"slots":null,"units":null,"age_ns":N,"since":"D","left_ns":null,'
                 '"account":"uid:U","uid":null,"user":"root","pid":null,"command":null,"client":null,"fence":null,'
                 '"interval_ns":null,"kept_ns":null,"meta":null,"application":null,"task":null,'
                 '"group":null}]}\n')
    slot = json.loads(place.run("ls", "slots", "-o", "jsonl", **someone_else())[1].splitlines()[0])
    expect_equal((slot["state"], slot["account"], slot["holder"], slot["attributes"]),
                 ("leased", "uid:0", None, None))
    code, _, err = place.run("release", "l1", **someone_else())
    expect_equal((code, err), (4, "dibs release: you hold no lease l1; dibs ls leases shows those "
                                  "that are held\n"))
    expect_equal(place.run("show", "c2", **someone_else())[0], 4)
    code, _, err = place.run("drain", "gpu", **someone_else())
    expect_equal(code, 5)
    expect_equal(err, "dibs drain: pool gpu: only administrators may: root; dibsd's configuration names no admin_group\n")
    expect_equal(place.run("fsck", **someone_else())[0], 5)
    own = place.begin("claim", "gpu", **someone_else())
    waiting(place, 2)
    told = json.loads(place.run("explain", "c3", "-o", "json", **someone_else())[1])
    expect_equal((told["reason"], told["position"], told["holder_account"], told["holder_pid"],
                  told["holder"]), ("behind", 2, "uid:0", None, None))
    err = not_now(place)
    expect(re.fullmatch(r'dibs exec: did not get a slot of pool "gpu": no slot is idle and '
                        r"the claim does not wait; a process of user root has held one for "
                        r"\d+(\.\d)?(ms|s|us|ns|min\d*s?)\n", err), err)
    expect_equal(place.run("cancel", "c3", **someone_else())[0], 0)
    expect(own.wait() != 0, "its own it may end")


@case("who may not is told who may, once, and which group: 5")
def who_may(place):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    place.start('socket_mode = "0666"\nadmin_group = "nogroup"\n' + POOLS)
    open_to_others(place)
    may = ("only administrators may: root and the group nogroup (admin_group in dibsd's "
           "configuration)\n")
    snapshot = place.folder / "state.dump"
    expect_equal(place.run("dump", str(snapshot))[0], 0)
    snapshot.chmod(0o644)
    stranger = {"user": 65534, "group": 65533, "extra_groups": []}
    for command, said in ((("drain", "gpu"), "drain: pool gpu: "),
                          (("account", "set", "q", "--rate", "1"), "account: account q: "),
                          (("dump", "-"), "dump: "), (("record", "/tmp/never"), "record: "),
                          (("load", str(snapshot)), "load: "), (("fsck",), "fsck: "),
                          (("pull", "web", "w"), "pull: "),
                          (("report", "idle", "web", "w"), "report: "),
                          (("exec", "z", "--create", "z=2", "--", "true"),
                           "exec: --create z=2: ")):
        expect_equal(place.run(*command, **stranger), (5, "", f"dibs {said}{may}"))


@case("another user sees the account that a policy names, and no uid")
def shared_account(place):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    place.start('socket_mode = "0666"\n[[policy]]\nuser = "root"\naccount = "research"\n' + POOLS)
    open_to_others(place)
    hold(place, "gpu:2")
    lease = json.loads(place.run("ls", "leases", "-o", "jsonl", **someone_else())[1])
    expect_equal((lease["account"], lease["uid"], lease["user"]), ("research", None, None))
    place.begin("claim", "gpu", **someone_else())
    waiting(place, 1)
    err = not_now(place)
    expect("; another user's process has held one for " in err, err)
    told = json.loads(place.run("explain", "c2", "-o", "json", **someone_else())[1])
    expect_equal([told[key] for key in ("account", "holder_account", "holder_user")],
                 ["uid:65534", "research", None])


@case("a terminal of 40 columns is fitted")
def narrow(place):
    place.start(POOLS)
    hold(place, "gpu:2", "-i", "5min")
    place.begin("claim", "gpu")
    waiting(place, 1)
    for command in (("ls", "pools"), ("ls", "slots"), ("ls", "leases"), ("ls", "claims"),
                    ("ls", "clients"), ("explain", "c2"), ("show", "gpu/0"), ("status",)):
        code, out, err = place.run(*command, environment={"COLUMNS": "40"})
        expect_equal((code, err), (0, ""))
        wide = [line for line in out.splitlines() if len(line) > 40 and " " in line.strip() and place.socket not in line]
        expect_equal(wide, [])
    # PID, too, while the time that the claim has waited is a short text.
    expect_equal(squeezed(place.run("ls", "claims", environment={"COLUMNS": "40"})[1])[0].removesuffix(" PID"),
                 "CLAIM POOL POSITION WAITS USER")


@case("no colour where there is no terminal, and on a terminal its width")
def terminal(place):
    place.start(POOLS)
    expect("\x1b" not in place.run("ls", "pools", environment={"TERM": "xterm"})[1], "plain")
    leader, follower = os.openpty()
    subprocess.run(["stty", "cols", "40", "rows", "20"], stdin=follower, check=True)
    child = subprocess.run([place.dibs, "ls", "pools"], stdout=follower, check=False, timeout=60,
                           env=place.environment(TERM="xterm"))
    os.close(follower)
    expect_equal(child.returncode, 0)
    said = os.read(leader, 65536).decode()
    os.close(leader)
    expect(said.startswith("\x1b[1mPOOL"), said)
    lines = [re.sub("\x1b\\[[0-9]*m", "", line) for line in said.splitlines()]
    expect_equal([line for line in lines if len(line) > 40], [])


@case("who stops reading ends it quietly; a full disk is said")
def closed_output(place):
    place.start('[[pool]]\nname = "many"\nkind = "counted"\nslots = 3000\n'
                '[[pool]]\nname = "none"\nkind = "worker"\n')
    reader, writer = os.pipe()
    os.close(reader)
    child = subprocess.run([place.dibs, "ls", "slots"], stdout=writer, stderr=subprocess.PIPE,
                           env=place.environment(), check=False, timeout=60)
    os.close(writer)
    expect_equal((child.returncode, child.stderr), (0, b""))
    with open("/dev/full", "w", encoding="utf-8") as full:
        child = subprocess.run([place.dibs, "status"], stdout=full, stderr=subprocess.PIPE,
                               text=True, env=place.environment(), check=False, timeout=60)
    expect_equal((child.returncode, child.stderr),
                 (1, "dibs status: cannot write to standard output: No space left on device\n"))
    # A closed descriptor must not become the broker's socket, or a segment, and be printed to.
    child = subprocess.run(["sh", "-c", '"$0" status >&- <&-', place.dibs], stderr=subprocess.PIPE,
                           text=True, env=place.environment(), check=False, timeout=60)
    expect_equal((child.returncode, child.stderr),
                 (1, "dibs status: cannot write to standard output: it is closed\n"))
    for command, said in ((["dump"], "dibs dump: cannot write to standard output: it is closed\n"),
                          (["--help"], "dibs: cannot write to standard output: it is closed\n"),
                          # These would wait first, for an event or a slot, and then find out.
                          (["events", "-f"],
                           "dibs events: cannot write to standard output: it is closed\n"),
                          (["claim", "none"],
                           "dibs claim: cannot write to standard output: it is closed\n"),
                          (["exec", "many", "--", "sh", "-c", "echo told || exit 9"], None)):
        child = subprocess.run(["sh", "-c", '"$@" >&-', "sh", place.dibs, *command],
                               stderr=subprocess.PIPE, text=True, env=place.environment(),
                               check=False, timeout=60)
        if said is None:  # the command is told what it would be told without dibs
            expect_equal(child.returncode, 9)
            expect("Bad file descriptor" in child.stderr or "I/O error" in child.stderr,
                   child.stderr)
        else:
            expect_equal((child.returncode, child.stderr), (1, said))
    with open("/dev/full", "w", encoding="utf-8") as full:
        child = subprocess.run([place.dibs, "--help"], stdout=full, stderr=subprocess.PIPE,
                               text=True, env=place.environment(), check=False, timeout=60)
    expect_equal((child.returncode, child.stderr),
                 (1, "dibs: cannot write to standard output: No space left on device\n"))
    for line in (["release", "abc"], ["renew", "-o", "json", "6x"], ["cancel", "7x"]):
        expect_equal(place.run(*line)[0], 2)
    holder = subprocess.run([place.dibs, "claim", "many"], stdout=writer_without_reader(),
                            stderr=subprocess.PIPE, env=place.environment(), check=False,
                            timeout=60)
    expect_equal((holder.returncode, holder.stderr), (0, b""))
    expect_equal(place.run("ls", "leases", "-o", "jsonl")[1], "")


def writer_without_reader():
    reader, writer = os.pipe()
    os.close(reader)
    return writer


if __name__ == "__main__":
    main(sys.argv)
