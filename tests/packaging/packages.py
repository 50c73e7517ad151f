#!/usr/bin/env python3
# tests/packaging/packages.py -- the Debian packages, installed into an empty folder and used there.
#
#   packages.py BUILD        speaks TAP; root is not needed
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "packaging/debian"))
import packages  # noqa: E402
from tap_lines import Tap  # noqa: E402

NAMES = ["dibs", "libdibs-dev", "libdibs0", "python3-dibs"]
CONFIG = """
[[pool]]
name = "gpu"
kind = "counted"
slots = 1
attributes = [{ device = "0" }]
"""
PYTHON = """
import dibs
assert dibs.__file__.startswith({root!r}), dibs.__file__
with dibs.connect() as client, client.claim("gpu", timeout=5) as lease:
    print("device", lease.attributes["device"], "is mine")
"""
# Nobody keeps them: two fifths of the time would be the compressor's.
os.environ.setdefault("DPKG_DEB_COMPRESSOR_LEVEL", "1")


def run(*command, **more):
    ran = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, timeout=120, **more)
    return ran.returncode, ran.stdout


def wrong(result, expected=None):
    """What is wrong with a program's end, or with what it said."""
    code, said = result
    if code == 0 and (expected is None or said == expected):
        return []
    return [f"ended with {code}", *said.splitlines()]


class Root:
    """A folder that is / to dpkg and to what is run from it."""

    def __init__(self, folder):
        self.path = folder / "root"
        for name in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "etc"):
            (self.path / name).mkdir(parents=True)
        (self.path / "var/lib/dpkg/status").touch()
        (self.path / "etc/passwd").touch()
        (self.path / "etc/group").touch()
        self.libraries = self.path / "usr/lib" / packages.output(
            "dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip()
        self.environment = {
            **os.environ, "LD_LIBRARY_PATH": str(self.libraries),
            "PYTHONPATH": str(self.path / "usr/lib/python3/dist-packages"),
            "PKG_CONFIG_PATH": str(self.libraries / "pkgconfig"),
            "PKG_CONFIG_SYSROOT_DIR": str(self.path), "DIBS_SOCKET": str(folder / "dibs.sock")}
        for name in ("DIBS_LIBRARY", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"):
            self.environment.pop(name, None)

    def dpkg(self, *arguments):
        log = self.path / "var/log"
        log.mkdir(exist_ok=True)
        # The host's packages are not below this root; maintainer scripts run on the host's shell.
        return run("dpkg", f"--root={self.path}", "--force-not-root", "--force-depends",
                   "--force-script-chrootless", "--force-bad-path", f"--log={log}/dpkg.log",
                   *arguments)

    def files(self):
        return sorted(path.relative_to(self.path).as_posix() for path in self.path.rglob("*")
                      if not path.is_dir() and not path.match("var/lib/dpkg/**"))

    def example(self, folder, name, header, compiler):
        """Compiles a header's example as a user would, and runs it."""
        text = (self.path / "usr/include/dibs" / header).read_text()
        lines = text.split("A complete program:")[1].split("#ifndef")[0].splitlines()
        source = folder / name
        source.write_text("\n".join(line[7:] for line in lines if line.startswith("//     ")))
        flags = packages.output("pkg-config", "--cflags", "--libs", "dibs", env=self.environment)
        built = run(*compiler, source, "-o", folder / "example", *flags.split())
        return built if built[0] != 0 else run(folder / "example", env=self.environment)


def check_contents(tap, root):
    code, said = root.dpkg("--list")
    tap.equal("all four are installed", sorted(re.findall(r"^ii +([\w-]+)", said, re.M)), NAMES)
    loaded = [str(file.relative_to(root.path)) for file in packages.binaries(root.path)
              if "RUNPATH" in run("readelf", "-d", file)[1]]
    tap.case("no binary looks for libraries in the build", loaded)
    if shutil.which("systemd-sysusers"):
        tap.case("the broker's user is made",
                 [] if "dibs:" in (root.path / "etc/passwd").read_text() else ["it is not"])
    else:
        tap.skip("the broker's user is made", "there is no systemd-sysusers")
    units = root.path / "usr/lib/systemd"
    if shutil.which("systemd-analyze"):
        for unit in sorted(units.glob("*/dibs*")):
            text = unit.read_text().replace("/usr/bin/", f"{root.path}/usr/bin/")
            copy = root.path.parent / unit.parent.name / unit.name
            copy.parent.mkdir(exist_ok=True)
            copy.write_text(text)
            code, said = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no",
                             f"--{unit.parent.name}", copy)
            about_us = [line for line in said.splitlines() if unit.name in line]
            tap.case(f"systemd finds nothing in {unit.parent.name}/{unit.name}", about_us)
    else:
        tap.skip("systemd finds nothing in the units", "there is no systemd-analyze")


def check_use(tap, root, folder):
    dibsd = root.path / "usr/bin/dibsd"
    tap.case("the configuration that comes with it is good",
             wrong(run(dibsd, "--check-config", root.path / "etc/dibs/dibs.toml",
                       env=root.environment)))
    (folder / "own.toml").write_text('log_level = "warning"\n' + CONFIG)
    broker = subprocess.Popen([dibsd, "--config", folder / "own.toml"], stdout=subprocess.PIPE,
                              text=True, env=root.environment)
    try:
        tap.equal("dibsd serves", broker.stdout.readline(),
                  f"dibsd: ready on {root.environment['DIBS_SOCKET']}\n")
        tap.case("the C example of the header is compiled and claims",
                 wrong(root.example(folder, "own.c", "dibs.h", ["cc"]), "device 0 is mine\n"))
        tap.case("the C++ example of the header is compiled and claims",
                 wrong(root.example(folder, "own.cpp", "dibs.hpp", ["c++", "-std=c++17"]),
                       "device 0 is mine\n"))
        python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3"
        tap.case("Python claims", wrong(run(python, "-c", PYTHON.format(root=str(root.path)),
                                            env=root.environment), "device 0 is mine\n"))
        cache = root.path / "usr/lib/python3/dist-packages/dibs/__pycache__"
        tap.case("Python has left its bytecode", [] if any(cache.glob("*.pyc")) else ["it has not"])
        tap.case("dibs says its version",
                 wrong(run(root.path / "usr/bin/dibs", "version", env=root.environment)))
    finally:
        broker.terminate()
        code = broker.wait(timeout=60)
        broker.stdout.close()
    tap.equal("dibsd stops in order", code, 0)


def main(build):
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix="dibs-packages-") as name:
        folder = pathlib.Path(name)
        made = packages.make(pathlib.Path(build), folder / "packages")
        tap.equal("there are four", sorted(path.name.split("_")[0] for path in made), NAMES)
        root = Root(folder)
        before = root.files()
        tap.case("they install into an empty folder", wrong(root.dpkg("--install", *made)))
        check_contents(tap, root)
        check_use(tap, root, folder)
        modules = root.path / "usr/lib/python3/dist-packages/dibs"
        tap.case("python3-dibs can be removed", wrong(root.dpkg("--remove", "python3-dibs")))
        tap.equal("its folder has gone, bytecode and all", modules.exists(), False)
        for path in ("run/dibs/dibs.sock.lock", "var/lib/dibs/state-put-aside",
                     "etc/systemd/system/multi-user.target.wants/dibsd.service"):
            (root.path / path).parent.mkdir(parents=True, exist_ok=True)
            (root.path / path).touch()  # as service and administrator leave them
        tap.case("they can be purged", wrong(root.dpkg("--purge", *NAMES)))
        left = set(root.files()) - set(before)
        tap.case("nothing of theirs is left", sorted(
            path for path in left if not re.match(r"var/(log|lib/dpkg)/|etc/(passwd|group|g?shadow|\.pwd)",
                                                  path)))
    sys.exit(tap.end())


if __name__ == "__main__":
    main(sys.argv[1])
