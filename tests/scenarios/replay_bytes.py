#!/usr/bin/env python3
# tests/scenarios/replay_bytes.py -- what `dibs replay` prints of each scenario, to the byte. TAP.
#
#   replay_bytes.py TOOL            compares with bytes.sha256: every run, build and machine
#   replay_bytes.py TOOL --write    writes that file anew: what is printed has been changed on purpose
#
# Once as text, as whoever wrote bytes.sha256 did, and once from the binary form of the same journal; with
# DIBS_FEWER=N, which sanitized builds set, one of N journals is, and the others are played as text.
# SPDX-License-Identifier: Apache-2.0
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
KNOWN = HERE / "bytes.sha256"


def printed(tool, journal):
    run = subprocess.run([tool, "replay", "--turns", "--final-state", journal],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if run.returncode != 0:
        raise AssertionError(f"replay ends with {run.returncode}: {run.stderr.decode()}")
    return hashlib.sha256(run.stdout).hexdigest()


def binary_form(tool, journal, folder):
    path = pathlib.Path(folder) / (journal.stem + ".bin")
    subprocess.run([tool, "replay", journal, "--to-binary", path], check=True,
                   stdout=subprocess.DEVNULL)
    return path


def known_hashes():
    lines = KNOWN.read_text().splitlines()
    return {name: hashed for hashed, name in (line.split() for line in lines)}


def differences(tool, journal, known, folder, again):
    hashed = printed(tool, journal)
    if known.get(journal.name) is None:
        yield "is not in bytes.sha256"
    elif hashed != known[journal.name]:
        yield "prints other bytes than bytes.sha256 knows"
    if not again:
        return
    if printed(tool, binary_form(tool, journal, folder)) != hashed:
        yield "prints other bytes from its binary form"


def main():
    tool = pathlib.Path(sys.argv[1]).resolve()
    journals = sorted(HERE.glob("*.jsonl"))
    if sys.argv[2:] == ["--write"]:
        KNOWN.write_text("".join(f"{printed(tool, journal)}  {journal.name}\n"
                                 for journal in journals))
        return 0
    known = known_hashes()
    fewer = int(os.environ.get("DIBS_FEWER", "1"))
    failed = 0
    print(f"1..{len(journals) + 1}")
    with tempfile.TemporaryDirectory(prefix="dibs-bytes-") as folder:
        for number, journal in enumerate(journals, 1):
            wrong = list(differences(tool, journal, known, folder, number % fewer == 0))
            failed += bool(wrong)
            for what in wrong:
                print(f"# {journal.name} {what}")
            print(f"{'not ok' if wrong else 'ok'} {number} - {journal.name}", flush=True)
    gone = sorted(set(known) - {journal.name for journal in journals})
    for name in gone:
        print(f"# bytes.sha256 names {name}, which is not there")
    print(f"{'not ok' if gone else 'ok'} {len(journals) + 1} - nothing else is known")
    return 1 if failed or gone else 0


if __name__ == "__main__":
    sys.exit(main())
