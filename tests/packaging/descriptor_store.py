#!/usr/bin/env python3
# tests/packaging/descriptor_store.py -- keeper and broker die together under a service manager that
# is played (played_systemd.py).
#
#   descriptor_store.py DIBSD        speaks TAP
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "clientlib/bindings/python"))
import dibs  # noqa: E402
from played_systemd import CONFIG, PATIENCE, Manager  # noqa: E402
from tap_lines import Tap  # noqa: E402

BROKEN = CONFIG + 'colour = "red"\n'
POLICY = f"""
[[pool]]
name = "two"
kind = "counted"
slots = 1

[[policy]]
user = {os.getuid()}
pools = ["one"]
"""
MISTAKE = '/dibsd.toml:6:1: unknown key "colour" in a pool'


class Waiting:
    """A claim that waits in a session of its own."""

    def __init__(self, path):
        self.client = dibs.connect(path, timeout=10)
        self.lease = None
        self.error = None
        self.thread = threading.Thread(target=self.claim, daemon=True)
        self.thread.start()

    def claim(self):
        try:
            self.lease = self.client.claim("one", timeout=120)
        except dibs.errors.Error as error:
            self.error = error

    def fence(self):
        self.thread.join(timeout=PATIENCE)
        return self.lease.fence if self.lease else self.error


def leased(manager):
    """Starts the service: a client that the manager has heard of, and its lease."""
    manager.start()
    client = dibs.connect(manager.path, timeout=10)
    lease = client.claim("one", timeout=10)
    manager.await_sessions(1)
    return client, lease


def await_draining(client):
    """Until the broker has heard that it is to stop."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            client.claim("one", timeout=10, when_busy=dibs.WhenBusy.REJECT)
        except dibs.errors.Draining:
            return
        except dibs.errors.Busy:
            pass
    raise AssertionError(f"it does not drain within {PATIENCE} s")


def connected(path, timeout):
    """Whether a new session is served, or why not."""
    try:
        with dibs.connect(path, timeout=timeout) as client:
            client.claim("one", timeout=10)
            return "served"
    except dibs.errors.Error as error:
        return type(error).__name__


def administered(path):
    """What the broker answers who wants to reset an account that it does not have."""
    try:
        dibs.Administration(path).reset_account("nobody")
    except dibs.errors.Error as error:
        return type(error).__name__
    return "done"


def await_waiting(client, count):
    deadline = time.monotonic() + PATIENCE
    while client.snapshot("one").queued < count:
        assert time.monotonic() < deadline, f"{count} claims do not wait within {PATIENCE} s"


def lives(client):
    """Whether a session is heard: a claim of what is taken is answered busy."""
    try:
        client.claim("one", timeout=60, when_busy=dibs.WhenBusy.REJECT).release()
        return True
    except dibs.errors.Busy:
        return True
    except dibs.errors.Error:
        return False


def survives(tap, dibsd, folder, listens):
    name = "lent socket" if listens else "own socket"
    manager = Manager(folder, dibsd, listens=listens)
    manager.start()
    holder = dibs.connect(manager.path, timeout=10)
    lease = holder.claim("one", timeout=10)
    waiting = Waiting(manager.path)
    await_waiting(holder, 1)
    manager.await_sessions(2)
    segments = ["board", "config", "state"] + ([] if listens else ["listener"])
    tap.equal(f"{name}: the manager stores segments, a broker and sessions",
              [name.split(".")[0] for name in manager.names()],
              sorted([*segments, "broker", "s", "s"]))
    for death in range(3):
        manager.kill_both()
        manager.start()
        tap.equal(f"{name}: serves again, death {death}", dibs.connect(
            manager.path, timeout=10).snapshot("one").leased, 1)
    fence = lease.fence
    lease.release(wait=10)
    tap.equal(f"{name}: the claim that waited is granted, with the next fence", waiting.fence(),
              fence + 1)
    waiting.lease.release(wait=10)
    tap.case(f"{name}: both sessions go on", [] if lives(holder) and lives(waiting.client) else [
        "one has ended"])
    holder.close()
    waiting.client.close()
    tap.equal(f"{name}: stops in order", manager.stop(), 0)
    tap.equal(f"{name}: leaves nothing that a next one would go on from",
              [name for name in manager.names() if not name.startswith("s.")], [])
    manager.start()
    with dibs.connect(manager.path, timeout=10) as client:
        tap.equal(f"{name}: begins anew then", client.claim("one", timeout=10).fence, 1)
    manager.close()


def lost(tap, dibsd, name, spoil, expected):
    """`spoil` changes what is stored of a broker with two sessions; what of them lives then."""
    with tempfile.TemporaryDirectory(prefix="dibs-store-") as folder:
        manager = Manager(folder, dibsd)
        manager.start()
        first = dibs.connect(manager.path, timeout=10)
        lease = first.claim("one", timeout=10)
        manager.await_sessions(1)
        second = dibs.connect(manager.path, timeout=10)
        manager.await_sessions(2)
        manager.kill_both()
        spoil(manager)
        manager.start()
        tap.equal(f"{name}: what lives", [lives(first), lives(second)], expected)
        with dibs.connect(manager.path, timeout=10) as third:
            tap.equal(f"{name}: the slot is there, or its holder", third.snapshot("one").leased,
                      1 if expected[0] else 0)
        names = [name for name, _ in manager.store]
        tap.case(f"{name}: nothing is left that was put aside",
                 [name for name in names if name in ("nonsense", "s.zz.1", "s.1")])
        for client in (first, second):
            client.close()
        manager.close()
        del lease


def add(name, make):
    def spoil(manager):
        manager.store.append((name, make(manager)))
    return spoil


def memfd(_):
    return os.memfd_create("other")


def take(manager, entries):
    for entry in entries:
        manager.store.remove(entry)
        os.close(entry[1])


def without(name):
    return lambda manager: take(manager, [one for one in manager.store if one[0] == name])


def second_session(manager):
    return sorted(name for name in manager.names() if name.startswith("s."))[1]


def incomplete(manager):
    name = second_session(manager)
    take(manager, [next(entry for entry in manager.store if entry[0] == name)])


def replaced(manager):
    name = second_session(manager)
    incomplete(manager)
    manager.store.append((name, os.memfd_create("dibs-up")))


def renamed(manager):
    name = second_session(manager)
    other = f"s.{int(name.split('.')[1], 16) + 7:x}.1"
    manager.store = [(other if stored == name else stored, number)
                     for stored, number in manager.store]


def no_broker(manager):
    take(manager, [entry for entry in manager.store if entry[0].startswith("broker.")])


def living_broker(tap, dibsd):
    """Both are stopped, and the manager takes them for dead. Another broker had that pid before."""
    with tempfile.TemporaryDirectory(prefix="dibs-store-") as folder:
        manager = Manager(folder, dibsd)
        client, lease = leased(manager)
        broker = manager.broker()
        handle = os.pidfd_open(broker)
        keeper = manager.process
        earlier = subprocess.Popen(["true"])
        manager.store.append((f"broker.{broker}", os.pidfd_open(earlier.pid)))  # is passed first
        earlier.wait(timeout=PATIENCE)
        for pid in (keeper.pid, broker):
            os.kill(pid, signal.SIGSTOP)
        manager.start()
        dead = bool(select.select([handle], [], [], 0)[0])
        os.close(handle)
        keeper.kill()
        keeper.wait(timeout=PATIENCE)
        tap.equal("a broker that lives: is dead before another one serves", dead, True)
        tap.equal("a broker that lives: its lease goes on", lease.release(wait=10), True)
        client.close()
        manager.close()


def restarted(tap, dibsd, listens):
    """Nobody's lease ends with a restart by habit, nor where the broker stands still in it."""
    name = "a restart on a lent socket" if listens else "a restart"
    with tempfile.TemporaryDirectory(prefix="dibs-store-") as folder:
        manager = Manager(folder, dibsd, listens=listens)
        manager.config.write_text(CONFIG.replace('"error"', '"info"'))
        client, lease = leased(manager)
        waiting = Waiting(manager.path)
        await_waiting(client, 1)
        others = [dibs.connect(manager.path, timeout=10) for _ in range(40)]  # told in batches
        tap.equal(f"{name}: ends in order", manager.restart(), 0)
        tap.equal(f"{name}: says what it leaves",
                  "the next start: the state and 42 sessions" in manager.said(), True)
        tap.equal(f"{name}: all sessions go on", [lives(one) for one in [client, *others]],
                  [True] * 41)
        tap.case(f"{name}: warns of nothing", [line for line in manager.said().splitlines()
                                               if " warning: " in line or " error: " in line])
        os.kill(manager.broker(), signal.SIGSTOP)
        tap.equal(f"{name} while the broker is stopped: ends in order", manager.restart(), 0)
        fence = lease.fence
        tap.equal(f"{name}: the lease is there", lease.release(wait=10), True)
        tap.equal(f"{name}: the claim that waited is granted, with the next fence",
                  waiting.fence(), fence + 1)
        waiting.lease.release(wait=10)
        for one in [client, waiting.client, *others]:
            one.close()
        tap.equal(f"{name}: is stopped in order later", manager.stop(), 0)
        manager.close()


def cut(tap, dibsd):
    """Whose lease a stop ends is said: nothing of it goes on."""
    with tempfile.TemporaryDirectory(prefix="dibs-store-") as folder:
        manager = Manager(folder, dibsd)
        manager.config.write_text('drain_timeout = "1ms"\n' +
                                  CONFIG.replace('"error"', '"warning"'))
        client, lease = leased(manager)
        manager.stop()
        line = (f"the broker stops: the lease of one/0 ends (process {os.getpid()} of user "
                f"{os.getuid()}, held for ")
        tap.case("a stop that cuts a lease: says whose", [] if line in manager.said() else
                 manager.said().splitlines())
        client.close()
        manager.close()
        del lease


def restarted_without_a_manager(tap, dibsd):
    """What nobody would go on from is not left: the broker stays."""
    with tempfile.TemporaryDirectory(prefix="dibs-store-") as folder:
        path = f"{folder}/dibs.sock"
        config = pathlib.Path(folder) / "dibsd.toml"
        config.write_text(CONFIG)
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("NOTIFY_SOCKET", "DIBS_SOCKET")}
        with subprocess.Popen([dibsd, "--config", config, "--socket", path], text=True,
                              env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as keeper:
            keeper.stdout.readline()
            with dibs.connect(path, timeout=10) as client:
                lease = client.claim("one", timeout=10)
                keeper.send_signal(signal.SIGUSR1)
                line = keeper.stderr.readline()
                tap.equal("without a manager: says why it goes on",
                          "there is none (NOTIFY_SOCKET)" in line, True)
                tap.equal("without a manager: goes on", lease.release(wait=10), True)
            keeper.terminate()
            keeper.communicate(timeout=PATIENCE)


def in_mid_drain(tap, dibsd):
    """Who begins the service anew wants it to serve."""
    with tempfile.TemporaryDirectory(prefix="dibs-store-") as folder:
        manager = Manager(folder, dibsd)
        client, lease = leased(manager)
        manager.process.terminate()
        await_draining(client)
        tap.equal("in mid-drain: its socket is stored still", "listener" in manager.names(), True)
        manager.kill_both()
        manager.start()
        tap.equal("in mid-drain: the lease goes on", lease.release(wait=10), True)
        with dibs.connect(manager.path, timeout=10) as later:
            tap.equal("in mid-drain: serves again", later.claim("one", timeout=10).units, 1)
        client.close()
        manager.close()


def on_a_lent_socket(tap, dibsd):
    """Who calls while it drains waits for the next broker; administrators look meanwhile."""
    with tempfile.TemporaryDirectory(prefix="dibs-store-") as folder:
        manager = Manager(folder, dibsd, listens=True)
        client, lease = leased(manager)
        manager.process.terminate()
        await_draining(client)
        tap.equal("on a lent socket: nobody is refused", connected(manager.path, 0.2), "NoBroker")
        tap.equal("on a lent socket: administrators are heard", administered(manager.path),
                  "NotFound")
        called = threading.Event()
        later = []

        def call():
            called.set()
            later.append(connected(manager.path, PATIENCE))

        caller = threading.Thread(target=call, daemon=True)
        caller.start()
        called.wait(timeout=PATIENCE)
        lease.release(wait=10)
        tap.equal("on a lent socket: stops in order", manager.process.wait(timeout=PATIENCE), 0)
        manager.start()
        caller.join(timeout=PATIENCE)
        tap.equal("on a lent socket: who has called meanwhile is served by the next broker",
                  later, ["served"])
        client.close()
        manager.close()


def on_a_socket_of_its_own_by_now(tap, dibsd):
    """Who has lent it does not have it any more: nobody else begins there, even so."""
    with tempfile.TemporaryDirectory(prefix="dibs-store-") as folder:
        manager = Manager(folder, dibsd, listens=True)
        client, lease = leased(manager)
        manager.lent.close()
        manager.process.terminate()
        await_draining(client)
        other = subprocess.run([dibsd, "--no-keeper", "--socket", manager.path], text=True,
                               stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
        tap.equal("a lent socket that nobody else has: no other broker begins there",
                  (other.returncode, other.stderr),
                  (1, f"dibsd: {manager.path}: another broker listens there\n"))
        lease.release(wait=10)
        tap.equal("a lent socket that nobody else has: stops in order",
                  manager.process.wait(timeout=PATIENCE), 0)
        client.close()
        manager.close()


def may_claim(client, pool):
    try:
        client.claim(pool, timeout=PATIENCE).release(wait=10)
    except dibs.errors.NotAllowed:
        return False
    return True


def with_a_broken_file(tap, dibsd):
    """What is there goes on without a good file; what begins anew says what is wrong with it."""
    with tempfile.TemporaryDirectory(prefix="dibs-store-") as folder:
        manager = Manager(folder, dibsd)
        client, lease = leased(manager)
        manager.config.write_text(CONFIG.replace("slots = 1", "slots = 2") + POLICY)
        tap.equal("a good file: is read again", manager.reload(), "")
        second = dibs.connect(manager.path, timeout=10)
        second.claim("one", timeout=PATIENCE).release(wait=10)  # waits until there are two slots
        manager.await_sessions(2)
        manager.config.write_text(BROKEN)
        tap.equal("a broken file: the reload says where", manager.reload().strip(),
                  folder + MISTAKE)
        for death in range(2):
            manager.kill_both()
            manager.start()
        tap.equal("a broken file: is in nobody's way who goes on from what is stored",
                  [lives(client), lives(second)], [True, True])
        tap.equal("a broken file: nor in the lease's", lease.release(wait=10), True)
        tap.equal("a broken file: what the last good one forbids stays forbidden",
                  may_claim(second, "two"), False)
        client.close()
        second.close()
        tap.equal("a broken file: stops in order", manager.stop(), 0)
        manager.launch()
        code = manager.process.wait(timeout=PATIENCE)
        tap.equal("a broken file: nothing begins anew with it", code, 2)
        tap.case("a broken file: the log says where", [] if manager.said().strip().endswith(
            folder + MISTAKE) else manager.said().splitlines())
        tap.equal("a broken file: is not tried again",
                  manager.unit.words("RestartPreventExitStatus"), [str(code)])
        manager.close()


def after_an_orderly_stop(tap, dibsd, spoil, expected):
    """A session that outlives the service that it was of is no reason to warn."""
    with tempfile.TemporaryDirectory(prefix="dibs-store-") as folder:
        manager = Manager(folder, dibsd)
        manager.config.write_text(CONFIG.replace('"error"', '"warning"'))
        manager.start()
        client = dibs.connect(manager.path, timeout=10)
        manager.await_sessions(1)
        manager.stop()
        spoil(manager)
        stored = sorted(name.split(".")[0] for name in manager.names())
        manager.start()
        manager.hear_until(lambda: not any(name in ("nonsense", "s") for name in (
            one.split(".")[0] for one in manager.names())), "what was left is taken out")
        tap.equal(f"after an orderly stop with {stored} left: is warned of",
                  "that nobody can use" in manager.said(), expected)
        client.close()
        manager.close()


def check_all(tap, dibsd):
    for listens in (False, True):
        with tempfile.TemporaryDirectory(prefix="dibs-store-") as folder:
            survives(tap, dibsd, folder, listens)
    both, one, none = [True, True], [True, False], [False, False]
    lost(tap, dibsd, "a name of nobody's", add("nonsense", memfd), both)
    lost(tap, dibsd, "a name that is nearly one", add("s.zz.1", memfd), both)
    lost(tap, dibsd, "half a name", add("s.1", memfd), both)
    lost(tap, dibsd, "two STATEs", add("state", memfd), none)
    lost(tap, dibsd, "no STATE", without("state"), none)
    lost(tap, dibsd, "no BOARD", without("board"), both)
    lost(tap, dibsd, "no listener", without("listener"), both)
    lost(tap, dibsd, "no proof of the broker's death", no_broker, none)
    lost(tap, dibsd, "a session without a descriptor", incomplete, one)
    lost(tap, dibsd, "a session with something else", replaced, one)
    lost(tap, dibsd, "a session of another row", renamed, one)
    living_broker(tap, dibsd)
    restarted(tap, dibsd, False)
    restarted(tap, dibsd, True)
    restarted_without_a_manager(tap, dibsd)
    cut(tap, dibsd)
    in_mid_drain(tap, dibsd)
    on_a_lent_socket(tap, dibsd)
    on_a_socket_of_its_own_by_now(tap, dibsd)
    with_a_broken_file(tap, dibsd)
    after_an_orderly_stop(tap, dibsd, lambda manager: None, False)
    after_an_orderly_stop(tap, dibsd, add("nonsense", memfd), True)


def main(dibsd):
    tap = Tap()
    try:
        check_all(tap, dibsd)
    finally:
        for manager in Manager.made:
            manager.abandon()
    sys.exit(tap.end())


if __name__ == "__main__":
    main(sys.argv[1])
