#!/usr/bin/env python3
# tests/tool/runner.py -- dibs-runner provides what its file says, and takes no bad one.
#
#   runner.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

from groups import ALICE, end, group_of, lives
from runners import answer, ask, await_slots, begin, call, go, leave, line_with, pools, program, rows, worker, write
from tap import Skip, case, expect, expect_equal, main

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/packaging"))
from unit_file import UnitFile  # noqa: E402

FLOOD = "while read -r line; do head -c 300000 /dev/zero | tr '\\0' x >&2; seq 5000 >&2; echo $$; done"


@case("two types of one runner grow under load, each by its command, shrink when they are idle, and the runner is stopped in order")
def grows_and_shrinks(place):
    place.start(pools("py", "sh", idle="300ms"))
    runner = begin(place, worker(place), worker(place, "sh", environment='{ MARK = "second" }'))
    calls = [call(place, "held") for _ in range(3)]
    await_slots(place, 3, "leased")
    expect_equal(place.run("call", "sh", "", "-t", "1min")[1].split()[1:], ["second"])
    go(place)
    processes = {answer(child) for child in calls}
    expect_equal(len(processes), 3)
    while rows(place) or any(lives(process) for process in processes):
        os.sched_yield()
    expect(ask(place) not in processes, "the same process")
    said = leave(runner)
    expect_equal(sorted(said.splitlines()), [f'dibs-runner: provisioner of type "{name}" of pool "{name}"'
                                             for name in ("py", "sh")])
    expect_equal(rows(place), [])


@case("max is answered as the type's quota: no more run, and the claims that wait are served by those that do")
def at_most(place):
    place.start(pools())
    begin(place, worker(place, count=2))
    calls = [call(place, "held") for _ in range(5)]
    await_slots(place, 2, "leased")
    go(place)
    expect_equal(len({answer(child) for child in calls}), 2)


@case("where the pool has another type the one at its max is passed over for that")
def another_type(place):
    place.start(pools() + "".join(f'[[type]]\nname = "{name}"\npool = "py"\ncost = {cost}\n'
                                  for name, cost in (("small", 1), ("large", 5))))
    begin(place, worker(place, count=1, type='"small"'), worker(place, type='"large"'))
    calls = [call(place, "held") for _ in range(3)]
    await_slots(place, 3, "leased")
    expect_equal(sorted(row["type"] for row in rows(place)), ["large", "large", "small"])
    go(place)
    expect_equal(len({answer(child) for child in calls}), 3)


@case("a command that ends at once, and one that is never ready, are told and tried again later; the other type serves")
def fails(place):
    place.start(pools("py", "ends", "never"))
    starts = place.folder / "starts"
    runner = begin(place, worker(place), worker(place, "ends", ready='"line:ready"',
                                                 script=f"echo >> {starts}; printf bye >&2; exit 3"),
                   worker(place, "never", script="sleep 1000", ready='"line:ready"', ready_timeout='"100ms"'))
    waiting = [call(place, "", "ends"), call(place, "", "never")]
    line_with(runner, "ends-0: bye\n")  # though its line has no end
    told = [line_with(runner, "ends-0: process"), line_with(runner, "was not ready within 100ms")]
    expect("ended with exit code 3" in told[0] and 'no line with "ready"' in told[1], told)
    ask(place)
    count = len(starts.read_text().splitlines())
    expect(1 <= count <= 8, f"{count} starts")
    leave(runner)
    expect(all(child.poll() is None for child in waiting), "its claim has ended")


@case("what a worker writes to its standard error is in the log by its name; a flood, of one line too, holds nothing up")
def floods(place):
    place.start(pools())
    log = place.folder / "log"
    with log.open("w", encoding="utf-8") as file:
        runner = begin(place, worker(place, script=FLOOD), stderr=file)
    for _ in range(3):
        ask(place)
    leave(runner)
    lines = log.read_text().splitlines()
    expect_equal(len([line for line in lines if line == "py-0: 4999"]), 3)
    expect(max(map(len, lines)) < 4096, "a long line")
    expect(sum(line.count("x") for line in lines if line.startswith("py-0: x")) == 900_000, "some is lost")


@case("a log whose reader is stalled, or whose disk is full, costs lines alone")
def stalled(place):
    place.start(pools())
    read_end, write_end = os.pipe()
    with open("/dev/full", "wb") as full:
        for log in (write_end, full):
            runner = begin(place, worker(place, script=FLOOD), stderr=log)
            for _ in range(4):
                ask(place)
            runner.terminate()
            expect_equal(runner.wait(60), 0)
    os.close(write_end)
    os.close(read_end)


@case("HUP: a type that is gone drains, a new one begins, what has changed is for new processes; a bad file changes nothing")
def reloads(place):
    place.start(pools("py", "sh", "new"))
    runner = begin(place, worker(place, count=1), worker(place, "sh"))
    process, old = ask(place), ask(place, "", "sh")

    def reload(text, *workers):
        write(place, *workers)
        runner.send_signal(signal.SIGHUP)
        return line_with(runner, text)

    expect("unknown key" in reload("unknown key", worker(place, nonsense=1)), "not said")
    expect("goes on as before" in line_with(runner, "as before"), "not said")
    expect_equal((ask(place), ask(place, "", "sh")), (process, old))
    reload("read its file again", worker(place, count=3, environment='{ MARK = "new" }'), worker(place, "new"))
    while lives(old):
        os.sched_yield()
    expect_equal(ask(place), process)
    ask(place, "", "new")
    calls = [call(place, "held") for _ in range(4)]
    await_slots(place, 3, "leased")
    go(place)
    processes = {answer(child) for child in calls}
    expect(len(processes) == 3 and process in processes, processes)
    for one in processes:
        end(one)
    expect_equal(place.run("call", "py", "", "-t", "1min")[1].split()[1:], ["new"])
    (place.folder / "runner.toml").chmod(0o666)
    runner.send_signal(signal.SIGHUP)
    line_with(runner, "chmod go-w")
    ask(place)
    reload("read its file again", worker(place, "sh"))
    ask(place, "", "sh")
    leave(runner)


@case("its units start, reload and stop it: ready once, stopping once, and nothing of that is the workers' to say")
def units(place):
    place.start(pools())
    file = write(place, worker(place, script='while read -r line; do echo $$ "[$NOTIFY_SOCKET]"; done'))
    for name in ("dibs-runner.service", "dibs-runner-user.service"):
        unit = UnitFile(name, None, None)
        unit.places = {"/usr/bin/dibs-runner": program(place), "/etc/dibs/runner.toml": str(file),
                       "%E/dibs/runner.toml": str(file), "/run/dibs/dibs.sock": place.socket,
                       "%t/dibs/dibs.sock": place.socket}
        expect_equal((unit.words("Type"), unit.words("Delegate"), unit.words("KillMode")), (["notify"], ["yes"], ["mixed"]))
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(str(place.folder / name))
            manager.settimeout(60)
            runner = subprocess.Popen(next(unit.commands("ExecStart")), stderr=subprocess.PIPE, text=True,
                                      env=place.environment(NOTIFY_SOCKET=str(place.folder / name)))
            place.children.append(runner)
            expect_equal(manager.recv(100), b"READY=1")
            expect_equal(place.run("call", "py", "", "-t", "1min")[1].split()[1:], ["[]"])
            for command in unit.commands("ExecReload", runner.pid):
                expect_equal(subprocess.run(command, timeout=60, check=False).returncode, 0)
            line_with(runner, "read its file again")
            leave(runner)
            expect_equal(manager.recv(100), b"STOPPING=1")


@case("ready by notify, as another user too, who has its groups, folder and variables, and none that begin with LD_")
def as_another(place):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    place.start(pools())
    place.folder.chmod(0o755)
    script = ("python3 -c 'import os, socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); "
              's.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])\' && '
              "while read -r line; do echo $$ $(id -un) $(id -g) $PWD $HOME $USER \"[$LD_LIBRARY_PATH]\" $MARK; done")
    begin(place, worker(place, script=script, ready='"notify"', user='"nobody"', folder='"/usr"',
                        environment='{ MARK = "x=y", HOME = "/nowhere" }'))
    code, out, err = place.run("call", "py", "", "-t", "1min")
    expect_equal((code, out.split()[1:], err),
                 (0, ["nobody", "65534", "/usr", "/nowhere", "nobody", "[]", "x=y"], ""))


@case("another user's command can open its standard error, output and input again")
def opens_again(place):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    place.start(pools())
    place.folder.chmod(0o755)
    script = "echo told >/dev/stderr; while read -r line </dev/stdin; do echo $$ >/dev/stdout; done"
    runner = begin(place, worker(place, script=script, user='"nobody"'))
    ask(place)
    line_with(runner, "py-0: told")


SESSION = '''
import os, sys
sys.path.insert(0, "{root}/clientlib/bindings/python")
import dibs
with dibs.connect() as client:
    client.announce("py", order=os.environ["DIBS_ORDER"])
    for one in client.assignments():
        if one.body == b"leave": os._exit(0)
        one.confirm()
        one.done(str(os.getpid()).encode())
'''


@case("ready by the session itself: the process announces with its order, is stopped when idle, and replaced when it dies")
def session(place):
    place.start(pools(idle="300ms"))
    file = place.folder / "serve.py"
    file.write_text(SESSION.replace("{root}", str(ROOT)))
    library = str(pathlib.Path(place.dibs).parents[2] / "clientlib/libdibs.so")
    loads = subprocess.run([sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", library], text=True,
                           capture_output=True, env=place.environment(), check=False)
    if any(word in loads.stderr for word in ("runtime does not come first", "undefined symbol")):
        raise Skip("a library with a sanitizer does not load into Python")
    os.environ["DIBS_LIBRARY"] = library
    runner = begin(place, worker(place, command=json.dumps(["python3", str(file)]), ready='"session"'))
    process = ask(place)
    while rows(place) or lives(process):
        os.sched_yield()
    process = ask(place)
    end(process)
    expect(ask(place) != process, "the same process")
    leave(runner)


@case("limits that cannot be had are said once, and the workers run")
def limits(place):
    place.start(pools("py", "sh"))
    with_limits = {"memory_max": '"64MiB"', "cpu_max": 0.5}
    runner = begin(place, worker(place, **with_limits), worker(place, "sh", **with_limits))
    process = ask(place)
    ask(place, "", "sh")
    group = group_of(process)
    said = leave(runner)
    if (group.parent.parent / "memory.max").exists() and "memory_max is not enforced" not in said:
        raise Skip("the controllers are there")
    expect_equal([said.count(f"{key} is not enforced: ") for key in with_limits], [1, 1])


@case("mistakes in the file or its words: where, what, and what to do; nothing is started")
def bad_input(place):
    place.start(pools())
    plain = place.folder / "plain"
    plain.write_text("")
    told = (
        ({"command": '["/nowhere/serve"]'}, "there is no command /nowhere/serve"),
        ({"command": '["serve-nothing"]'}, 'there is no command "serve-nothing" in the folders of PATH'),
        ({"command": f'["{plain}"]'}, "it is no executable file"),
        ({"command": '["./serve"]'}, "write its whole path"),
        ({"command": "[]"}, "command: there is none"),
        ({"environment": '{ "A=B" = "x" }'}, "environment: \"A=B\": a variable's name has no '='"),
        ({"environment": '{ "A\\nB" = "x" }'}, "no newline"),
        ({"environment": '{ DIBS_SOCKET = "x" }'}, "the runner sets it"),
        ({"max": -1}, "max: must be between 1 and 1000"),
        ({"min": 5}, "min: is the pool's: workers_min of its [[pool]] in dibsd's configuration"),
        ({"memory_max": -5}, "memory_max: must be between 1MiB and"),
        ({"cpu_max": -0.5}, "cpu_max: must be a number of CPUs"),
        ({"uses_max": -1}, "uses_max: must be between 0 and"),
        ({"age_max": '"-1s"'}, "age_max: \"-1s\" is not a duration"),
        ({"backoff": '"2min"'}, "backoff_max (30s) is below backoff"),
        ({"redy": '"notify"'}, 'unknown key "redy" in a worker; did you mean "ready"?'),
        ({"ready": '"soon"'}, 'ready: "soon" is none of "start", "line:TEXT", "notify", "session"'),
        ({"ready": '"session"', "uses_max": 3}, 'uses_max: with ready = "session" the process itself'),
        ({"user": '"nobody-there"'}, 'this host knows no user "nobody-there"'),
        ({"folder": '"/nowhere"'}, "is no folder's whole path"),
        ({"name": '"a\\nb"'}, "name: "),
        ({"folder": '"/usr\\u0000x"'}, "folder: a zero byte"),
        ({"type": '"a/b"'}, "type: a pool's name has"),
    )
    for keys, what in told:
        text = worker(place, **{"command": '["true"]'} | keys)
        write(place, text)
        last = list(keys)[-1]
        line = next(number for number, one in enumerate(text.splitlines(), 1) if one.startswith(last))
        for option in ("--check", "--config"):
            ran = subprocess.run([program(place), option, place.folder / "runner.toml"], capture_output=True,
                                 text=True, env=place.environment(), timeout=60, check=False)
            expect_equal((ran.returncode, ran.stdout), (2, ""))
            expect(what in ran.stderr, (what, ran.stderr))
            expect(f"runner.toml:{line}:" in ran.stderr, (line, ran.stderr))
    expect_equal(rows(place, "types")[0]["provisioner"], None)


@case("two types of a pool whose processes would have the same names are a mistake")
def same_names(place):
    write(place, worker(place, type='"small"', name='"w"'), worker(place, type='"large"', name='"w"'))
    ran = subprocess.run([program(place), "--check", place.folder / "runner.toml"], capture_output=True, text=True,
                         env=place.environment(), timeout=60, check=False)
    expect_equal((ran.returncode, ran.stdout), (2, ""))
    expect('type "small" of pool "py" has the name "w", too' in ran.stderr, ran.stderr)


@case("all mistakes of a file are told, each once, in the order of its lines")
def many_mistakes(place):
    file = write(place, '[[worker]]\ntype = 3\nredy = "x"\nsoon\ngrace = "2"\ncommand = [5]\nmax = "3"\n',
                 '[[worker]]\nmax = 0\npool = "a/b"\ncommand = "x"\nfolder = "rel"\nleft = no\nage_max = "q"\n')
    ran = subprocess.run([program(place), "--check", file], capture_output=True, text=True, env=place.environment(),
                         timeout=60, check=False)
    lines = [int(line.split(f"{file}:")[1].split(":")[0]) for line in ran.stderr.splitlines()]
    expect_equal((ran.returncode, lines), (2, [2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14]))


@case("a file that others can write, or own, is not taken; nor what is no file")
def guarded(place):
    place.start(pools())
    file = write(place, worker(place))

    def refused(path, text):
        ran = subprocess.run([program(place), "--config", path], capture_output=True, text=True,
                             env=place.environment(), timeout=60, check=False)
        expect_equal(ran.returncode, 2)
        expect(text in ran.stderr, ran.stderr)

    for mode in (0o666, 0o664):
        file.chmod(mode)
        refused(file, f"others may write to it, and could have any command run: chmod go-w {file}")
    file.chmod(0o644)
    refused(place.folder, "is not a regular file")
    refused(place.folder / "nothing", "No such file")
    if os.geteuid() == 0:
        os.chown(file, ALICE, ALICE)
        refused(file, "who could have any command run: it must be root's or yours")
        write(place, worker(place, user='"nobody"', environment='{ LD_PRELOAD = "/tmp/x.so" }'))
        os.chown(file, 0, 0)
        refused(file, '"LD_PRELOAD": would have code of this file\'s choice run as user nobody')


@case("a pool or type that is not there, or a command that does not start, is told; the other types serve")
def unknown(place):
    place.start(pools())
    runner = begin(place, worker(place, "pyy"), worker(place, type='"small"'), worker(place))
    told = {line_with(runner, "not yet provisioner") for _ in range(2)}
    expect(any('there is no pool "pyy"' in line and "py" in line for line in told), told)
    expect(any('there is no type "small" of pool "py": [[type]] in dibsd\'s' in line for line in told), told)
    ask(place)


if __name__ == "__main__":
    main(sys.argv)
