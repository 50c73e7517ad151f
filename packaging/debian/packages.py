#!/usr/bin/env python3
# packaging/debian/packages.py -- makes the Debian packages out of a build folder.
#
#   packages.py BUILD OUT
#
# `meson install` stages what the build has, below the prefix that it was set up with; what is
# staged is moved to /usr and dealt out to four packages. Nothing is compiled, nothing but OUT is
# written, root is not needed.
# SPDX-License-Identifier: Apache-2.0
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAINTAINER = "dibs maintainers <dibs@localhost>"

ABOUT = {
    "dibs": ("admin", "broker of warm, exclusive slots, and its command line",
             "dibsd hands out warm processes, GPUs, tokens and the like to the processes of one\n"
             " host: fairly when there are too few, and never twice."),
    "libdibs0": ("libs", "claims warm, exclusive slots from dibsd",
                 "The C library: claims and leases through shared memory."),
    "libdibs-dev": ("libdevel", "headers of libdibs, for C and C++",
                    "dibs/dibs.h, which is its own reference, and dibs/dibs.hpp for C++17."),
    "python3-dibs": ("python", "Python client of dibsd",
                     "Claims and workers through ctypes, also for asyncio."),
}

# Where staged files go: the first pattern that matches.
DEALT = [
    (r"usr/bin/.*|usr/share/man/man[158]/.*|usr/share/(bash|zsh|fish).*|usr/lib/(systemd|sysusers|"
     r"tmpfiles).*|usr/share/(doc/)?dibs/.*|etc/.*", "dibs"),
    (r"usr/lib/[^/]+/libdibs\.so\.\d.*", "libdibs0"),
    (r"usr/include/.*|usr/lib/[^/]+/(libdibs\.so|pkgconfig/.*)|usr/share/man/man3/.*",
     "libdibs-dev"),
    (r"usr/lib/python3/.*", "python3-dibs"),
]


def output(*command, **more):
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    if ran.returncode != 0:
        raise SystemExit(f"packages: {' '.join(map(str, command))}:\n{ran.stderr}{ran.stdout}")
    return ran.stdout


def stage(build, folder):
    """What the build installs and what lies here, below folder as it will lie below /."""
    options = {option["name"]: option["value"]
               for option in json.loads(output("meson", "introspect", "--buildoptions", build))}
    raw = folder.parent / "raw"
    environment = {**os.environ, "DESTDIR": str(raw)}
    output("meson", "install", "--no-rebuild", "--quiet", "-C", build, env=environment)
    shutil.move(str(raw / options["prefix"].lstrip("/")), folder / "usr")
    for config in (folder / "usr").rglob("*.pc"):
        config.write_text(re.sub(r"^prefix=.*", "prefix=/usr", config.read_text(), flags=re.M))

    zsh = folder / "usr/share/zsh"  # where Debian's zsh looks
    shutil.move(zsh / "site-functions", zsh / "vendor-completions")

    def place(source, target, mode=0o644):
        target = folder / target
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / source, target)
        target.chmod(mode)

    place("packaging/dibs.toml", "etc/dibs/dibs.toml")
    place("packaging/grafana/dibs.json", "usr/share/dibs/grafana/dibs.json")
    place("packaging/systemd/dibsd.service", "usr/lib/systemd/system/dibsd.service")
    place("packaging/systemd/dibsd-user.service", "usr/lib/systemd/user/dibsd.service")
    place("packaging/systemd/dibs-runner.service", "usr/lib/systemd/system/dibs-runner.service")
    place("packaging/systemd/dibs-runner-user.service", "usr/lib/systemd/user/dibs-runner.service")
    place("packaging/systemd/dibs.sysusers", "usr/lib/sysusers.d/dibs.conf")
    place("packaging/systemd/dibs.tmpfiles", "usr/lib/tmpfiles.d/dibs.conf")
    for pattern in ("*.socket", "*@.service"):
        for extra in sorted((ROOT / "packaging/systemd").glob(pattern)):
            place(extra.relative_to(ROOT), f"usr/lib/systemd/system/{extra.name}")
    for extra in sorted((ROOT / "docs").iterdir()):
        place(extra.relative_to(ROOT), f"usr/share/doc/dibs/{extra.name}")
    for source in sorted((ROOT / "clientlib/bindings/python/dibs").iterdir()):
        if source.suffix in (".py", ".typed"):
            place(source.relative_to(ROOT), f"usr/lib/python3/dist-packages/dibs/{source.name}")
    for page in sorted((folder / "usr/share/man").rglob("*.[1-8]")):
        page.with_name(page.name + ".gz").write_bytes(gzip.compress(page.read_bytes(), mtime=0))
        page.unlink()


def deal(staged, trees):
    for file in sorted(staged.rglob("*")):
        if file.is_dir() and not file.is_symlink():
            continue
        path = file.relative_to(staged).as_posix()
        owner = next((name for pattern, name in DEALT if re.fullmatch(pattern, path)), None)
        if owner is None:
            raise SystemExit(f"packages: {path} belongs to no package")
        target = trees / owner / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(str(file), target)


def binaries(tree):
    for file in sorted(tree.rglob("*")):
        if file.is_file() and not file.is_symlink():
            with file.open("rb") as content:
                if content.read(4) == b"\x7fELF":
                    yield file


def needed(tree, version):
    """The packages whose libraries the binaries load, as dpkg-shlibdeps finds them."""
    files = list(binaries(tree))
    if not files:
        return []
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "debian").mkdir()
        (pathlib.Path(folder) / "debian/control").write_text(
            "Source: dibs\n\nPackage: dibs\nArchitecture: any\n")
        local = pathlib.Path(folder) / "shlibs.local"
        local.write_text(f"libdibs 0 libdibs0 (= {version})\n")
        library = tree.parent / "libdibs0"
        # Our own library is none of the host's; it is found in the other package's tree.
        text = output("dpkg-shlibdeps", "-O", f"-L{local}", *(
            f"-l{path.parent}" for path in binaries(library)), *(f"-e{file}" for file in files),
            cwd=folder)
    return [item.strip() for item in text.split("=", 1)[1].split(",")]


def control(name, tree, version, architecture):
    section, short, long = ABOUT[name]
    if name == "python3-dibs":
        architecture, depends = "all", ["python3 (>= 3.9)", f"libdibs0 (>= {version})"]
    elif name == "libdibs-dev":
        depends = [f"libdibs0 (= {version})"]
    else:
        depends = needed(tree, version)
    if name == "dibs":
        depends.append("adduser | systemd")  # postinst: either makes the broker's user
    size = sum(file.stat().st_size for file in tree.rglob("*") if file.is_file()) // 1024 + 1
    lines = [f"Package: {name}", "Source: dibs", f"Version: {version}",
             f"Architecture: {architecture}", f"Maintainer: {MAINTAINER}",
             f"Installed-Size: {size}", f"Depends: {', '.join(depends)}"]
    if name == "dibs":
        lines.append("Recommends: systemd")
    if name in ("libdibs0", "libdibs-dev"):
        lines.append("Multi-Arch: same")
    lines += [f"Section: {section}", "Priority: optional", f"Description: {short}", f" {long}"]
    return "\n".join(lines) + "\n"


def finish(name, tree, version, architecture):
    """What every package has besides its files."""
    for file in binaries(tree):
        output("strip", "--strip-unneeded", str(file))
    documents = tree / "usr/share/doc" / name
    documents.mkdir(parents=True, exist_ok=True)
    (documents / "copyright").write_text(
        "dibs is under the Apache License 2.0: /usr/share/common-licenses/Apache-2.0\n")
    changes = (ROOT / "CHANGELOG.md").read_bytes()
    (documents / "changelog.gz").write_bytes(gzip.compress(changes, mtime=0))
    meta = tree / "DEBIAN"
    meta.mkdir()
    (meta / "control").write_text(control(name, tree, version, architecture))
    if name == "dibs":
        (meta / "conffiles").write_text("/etc/dibs/dibs.toml\n")
        for script in ("postinst", "prerm", "postrm"):
            shutil.copyfile(ROOT / "packaging/debian" / script, meta / script)
            (meta / script).chmod(0o755)
    if name == "python3-dibs":
        shutil.copyfile(ROOT / "packaging/debian/python3-dibs.prerm", meta / "prerm")
        (meta / "prerm").chmod(0o755)
    if name == "libdibs0":
        (meta / "shlibs").write_text(f"libdibs 0 libdibs0 (>= {version})\n")
        (meta / "triggers").write_text("activate-noawait ldconfig\n")
    for folder in [tree, *(path for path in tree.rglob("*") if path.is_dir())]:
        folder.chmod(0o755)


def make(build, out):
    """Makes the packages and returns their paths."""
    project = json.loads(output("meson", "introspect", "--projectinfo", build))
    version, architecture = project["version"], output("dpkg", "--print-architecture").strip()
    out.mkdir(parents=True, exist_ok=True)
    made = []
    with tempfile.TemporaryDirectory() as folder:
        staged, trees = pathlib.Path(folder) / "staged", pathlib.Path(folder) / "trees"
        staged.mkdir()
        stage(str(build), staged)
        deal(staged, trees)
        for name in ("libdibs0", "dibs", "libdibs-dev", "python3-dibs"):
            finish(name, trees / name, version, architecture)
            package = out / f"{name}_{version}_{'all' if name.startswith('py') else architecture}.deb"
            output("dpkg-deb", "--build", "--root-owner-group", str(trees / name), str(package))
            made.append(package)
    return made


if __name__ == "__main__":
    for package in make(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])):
        print(package)
