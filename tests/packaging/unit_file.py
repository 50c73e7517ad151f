# tests/packaging/unit_file.py -- what a unit of packaging/systemd tells the manager to run.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import shlex

ROOT = pathlib.Path(__file__).resolve().parents[2]


class UnitFile:
    """Its commands as systemd would run them, with this dibsd and this configuration."""

    def __init__(self, name, dibsd, config):
        self.values = {}
        for line in (ROOT / "packaging/systemd" / name).read_text().splitlines():
            key, equals, value = line.partition("=")
            if equals and not line.startswith("#"):
                self.values.setdefault(key, []).append(value)
        self.places = {"/usr/bin/dibsd": str(dibsd), "/etc/dibs/dibs.toml": str(config),
                       "%E/dibs/dibs.toml": str(config)}

    def commands(self, key, main_pid=None):
        for value in self.values.get(key, []):
            yield [self.places.get(word, word).replace("$MAINPID", str(main_pid))
                   for word in shlex.split(value)]

    def words(self, key):
        return [word for value in self.values.get(key, []) for word in value.split()]
