# tests/python/conftest.py -- a real dibsd for each test that asks for one.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "clientlib/bindings/python"))

CONFIG = """
log_level = "warning"
[[pool]]
name = "gpu"
kind = "counted"
slots = 2
attributes = [{ device = "0" }, { device = "1" }]
[[pool]]
name = "one"
kind = "counted"
slots = 1
[[pool]]
name = "web"
kind = "worker"
answer_max = 64
attributes_max = 64
reservation_ttl = "10min"
"""


class Dibsd:
    """A broker in a folder of its own; ready when it has been made."""

    def __init__(self, folder, config=CONFIG, keeper=False):
        self.keeper = keeper
        self.socket = f"{folder}/dibs.sock"
        file = pathlib.Path(folder) / "dibsd.toml"
        file.write_text(config)
        self.process = subprocess.Popen(
            [os.environ["DIBS_DIBSD"], *([] if keeper else ["--no-keeper"]), "--config", file,
             "--socket", self.socket],
            stdout=subprocess.PIPE, text=True, env=os.environ | {"DIBS_STATE_DIR": str(folder)})
        assert self.process.stdout.readline() == f"dibsd: ready on {self.socket}\n"

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(signal.SIGTERM if self.keeper else signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def dibsd():
    with tempfile.TemporaryDirectory(prefix="dibs-python-") as folder:
        broker = Dibsd(folder)
        yield broker
        broker.end()


@pytest.fixture
def client(dibsd):
    import dibs
    with dibs.connect(dibsd.socket, timeout=10) as session:
        yield session


@pytest.fixture
def other(dibsd):
    import dibs
    with dibs.connect(dibsd.socket, timeout=10) as session:
        yield session


def until(condition):
    """Looks until it holds; meson's time limit ends what never does."""
    while not condition():
        os.sched_yield()


def heard(claim):
    """What the broker says to a claim; one that is late lets the library end it as expired."""
    import dibs
    while True:
        try:
            return claim()
        except dibs.Expired as error:
            if "no word of the broker" not in str(error):
                raise
