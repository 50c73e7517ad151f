# tests/tool/runners.py -- a dibs-runner, its file, and the pools that it provides, for cases about it.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import shutil
import signal
import subprocess

from groups import LEAVES, end
from tap import expect, expect_equal

POOL = '[[pool]]\nname = "{name}"\nkind = "worker"\nanswer_max = 4096\nworkers_max = 4\nidle_timeout = "{idle}"\n'
# Each answer begins with its process's number; a body with "held" waits until the file is there.
SERVE = ('while read -r line; do case $line in *held*) while [ ! -e {go} ]; do sleep 0.01; done; echo $$;; '
         f'*leave*) {LEAVES.replace("echo left $$", "echo $$")};; *) echo $$ $MARK;; esac; done')


def pools(*names, idle="1h"):
    return "".join(POOL.format(name=name, idle=idle) for name in names or ("py",))


def quoted(text):
    return json.dumps(text)


def worker(place, pool="py", count=4, script=SERVE, **keys):
    """A [[worker]] of the runner's file: what it says besides is written as it is."""
    script = script.replace("{go}", str(place.folder / "go"))
    said = {"pool": quoted(pool), "max": count, "command": json.dumps(["/bin/sh", "-c", script])} | keys
    return "[[worker]]\n" + "".join(f"{key} = {value}\n" for key, value in said.items())


def program(place):
    return str(pathlib.Path(place.dibs).parent / "runner/dibs-runner")


def write(place, *workers):
    file = place.folder / "runner.toml"
    file.write_text("".join(workers))
    file.chmod(0o644)
    return file


def begin(place, *workers, user=None, group=None, **options):
    """Starts the runner with this file, or with the one that is there; `user` in a control group of its own."""
    file = write(place, *workers) if workers else place.folder / "runner.toml"
    words = [program(place), "--config", str(file)]
    if user is not None:
        place.tool({"user": user})  # and the library that both need
        words[0] = shutil.copy(words[0], place.folder)
        words = ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", *words]
    if group is not None:
        words = ["sh", "-c", f'echo 0 > {group}/cgroup.procs && exec "$@"', "sh", *words]
    runner = subprocess.Popen(words, text=True, env=place.environment(),
                              **{"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE} | options)
    place.children.append(runner)
    return runner


def line_with(runner, text):
    while text not in (line := runner.stderr.readline()):
        expect(line, f"it has ended and not said {text!r}")
    return line


def leave(runner, number=signal.SIGTERM):
    runner.send_signal(number)
    expect_equal(runner.wait(60), 0)
    return runner.stderr.read() if runner.stderr else ""


def rows(place, what="slots"):
    code, out, err = place.run("ls", what, "-o", "json")
    expect_equal((code, err), (0, ""))
    return json.loads(out)["rows"]


def slots(place, *states):
    return [row for row in rows(place) if row["state"] in states]


def await_slots(place, count, *states):
    while len(slots(place, *states)) != count:
        os.sched_yield()


def call(place, body="", pool="py"):
    return place.begin("call", pool, body, "-t", "1min")


def answer(child):
    expect_equal(child.wait(60), 0)
    return int(child.stdout.read().split()[0])


def ask(place, body="", pool="py"):
    return answer(call(place, body, pool))


def go(place):
    (place.folder / "go").touch()


def guard_of(runner):
    """The process that ends what a killed runner leaves; one that is being started gives itself its name."""
    while True:
        for child in pathlib.Path(f"/proc/{runner.pid}/task/{runner.pid}/children").read_text().split():
            if pathlib.Path(f"/proc/{child}/comm").read_text() == "dibs-guard\n":
                return int(child)
        os.sched_yield()


def kill_both(runner):
    """Runner and guard at once, as the end of a container or a manager's last KILL but for their workers."""
    guard = guard_of(runner)
    os.kill(guard, signal.SIGSTOP)
    runner.kill()
    runner.wait(60)
    end(guard)


def kept_broker(place, config):
    file = place.folder / "dibsd.toml"
    file.write_text('log_level = "off"\n' + config)
    keeper = subprocess.Popen([place.dibsd, "--config", file, "--socket", place.socket], stdout=subprocess.PIPE,
                              text=True, env=place.environment(DIBS_STATE_DIR=str(place.folder)))
    place.children.append(keeper)
    expect_equal(keeper.stdout.readline(), f"dibsd: ready on {place.socket}\n")
    return keeper
