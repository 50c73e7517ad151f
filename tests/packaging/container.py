#!/usr/bin/env python3
# tests/packaging/container.py -- a client in namespaces of its own, with one bind mount of the
# socket's folder, as docs/containers.md says.
#
#   container.py DIBSD        speaks TAP
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from tap_lines import Tap  # noqa: E402
CONFIG = 'log_level = "warning"\n[[pool]]\nname = "one"\nkind = "counted"\nslots = 1\n'
# The namespaces of a container: its own mounts, processes, IPC, network and host name, and a
# /dev/shm in which nothing has room.
UNSHARE = ["unshare", "--mount", "--pid", "--ipc", "--net", "--uts", "--fork", "--kill-child"]
SHELL = """
set -e
mount -t proc proc /proc
mount -t tmpfs -o size=4k tmpfs /dev/shm
mkdir -p "$2" && mount --bind "$1" "$2"
export DIBS_SOCKET=$2/dibs.sock
exec "$3" -c "$4"
"""
CLIENT = """
import os, dibs
assert os.getpid() == 1
with dibs.connect(timeout=10) as client:
    for round in range(3):
        with client.claim("one", timeout=10) as lease:
            print("fence", lease.fence > 0)
    client.claim("one", timeout=10)
    os._exit(0)  # and holds it
"""


def main(dibsd):
    tap = Tap()
    if subprocess.run([*UNSHARE, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        tap.skip("a client in a container claims", "namespaces need root here")
        sys.exit(tap.end())
    with tempfile.TemporaryDirectory(prefix="dibs-container-") as folder:
        config = pathlib.Path(folder) / "dibsd.toml"
        config.write_text(CONFIG)
        run = pathlib.Path(folder) / "run"
        run.mkdir()
        broker = subprocess.Popen([dibsd, "--config", config, "--socket", run / "dibs.sock"],
                                  stdout=subprocess.PIPE, text=True)
        broker.stdout.readline()
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "clientlib/bindings/python")}
        try:
            for attempt in ("a client in a container claims",
                            "what it held goes back when its first process ends"):
                ended = subprocess.run(
                    [*UNSHARE, "bash", "-c", SHELL, "bash", run, f"{folder}/inside",
                     sys.executable, CLIENT], capture_output=True, text=True, env=environment,
                    timeout=60)
                tap.equal(attempt, (ended.returncode, ended.stdout, ended.stderr),
                          (0, "fence True\n" * 3, ""))
        finally:
            broker.terminate()
            broker.wait(timeout=60)
            broker.stdout.close()
    sys.exit(tap.end())


if __name__ == "__main__":
    main(sys.argv[1])
