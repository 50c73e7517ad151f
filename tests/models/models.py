#!/usr/bin/env python3
# tests/models/models.py -- checks the models with spin, and that each broken variant is caught.
#
# Speaks TAP. A variant that passes is a failure: a model that cannot fail shows nothing.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LONG = "DIBS_LONG" in os.environ

# model, bounds by default, bounds under --long, variants that must fail
MODELS = [
    ("doorbell", ["-DENTRIES=3"], ["-DENTRIES=6"], ["NO_BARRIER", "NO_RECHECK", "NO_DEATH_DRAIN"]),
    ("turn", ["-DGRANTS=3", "-DDEATHS=2"], ["-DGRANTS=6", "-DDEATHS=4"],
     ["NO_LOG", "EARLY_STORE", "COUNT_FIRST", "EARLY_CONSUME"]),
    ("takeover", ["-DGRANTS=1", "-DDEATHS=1"], ["-DGRANTS=2", "-DDEATHS=2"],
     ["NO_PROOF", "KILL_IS_PROOF", "NO_REPEAT"]),
    ("handover", ["-DDEATHS=3"], ["-DDEATHS=6"], ["NO_ACK", "NO_HANDBACK"]),
    ("parked", ["-DTAKES=2", "-DDEATHS=2"], ["-DTAKES=5", "-DDEATHS=5"],
     ["END_FIRST", "COUNT_LATE", "READ_EARLY", "REFUSE_FIRST", "NO_TAG_PROOF"]),
    ("expiry", [], [],
     ["NO_PROOF", "FAILED_IS_DEAD", "HANGUP_IS_DEATH", "NO_FENCE", "KEEP_OWNER"]),
]


def errors_of(model, defines):
    """Runs spin on the model; returns (errors, states), or raises with what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["spin", "-a", *defines, str(HERE / f"{model}.pml")],
                       cwd=folder, check=True, capture_output=True, text=True)
        subprocess.run(["cc", "-O0", "-w", "-DSAFETY", "-DMEMLIM=2048", "-o", "pan", "pan.c"],
                       cwd=folder, check=True, capture_output=True, text=True)
        run = subprocess.run(["./pan", "-m1000000"], cwd=folder, check=False,
                             capture_output=True, text=True)
    lines = run.stdout.splitlines()
    errors = [int(line.rsplit("errors:", 1)[1]) for line in lines if "errors:" in line]
    states = [int(line.split()[0]) for line in lines if "states, stored" in line]
    if len(errors) != 1 or len(states) != 1:
        raise RuntimeError(run.stdout + run.stderr)
    if "max search depth too small" in run.stdout or "out of memory" in run.stdout:
        raise RuntimeError("the search was cut short")
    return errors[0], states[0]


def main():
    cases = [(model, long if LONG else short, variant)
             for model, short, long, variants in MODELS for variant in [None, *variants]]
    print(f"1..{len(cases)}")
    missing = [tool for tool in ("spin", "cc") if shutil.which(tool) is None]
    failed = False
    for number, (model, bounds, variant) in enumerate(cases, 1):
        name = model if variant is None else f"{model} without its guard: {variant}"
        if missing:
            print(f"ok {number} - {name} # SKIP {missing[0]} is not installed")
            continue
        try:
            errors, states = errors_of(model, bounds + ([f"-D{variant}"] if variant else []))
            good = errors == 0 if variant is None else errors > 0
            print(f"# {name}: {states} states, {errors} errors")
        except (subprocess.CalledProcessError, RuntimeError) as problem:
            detail = getattr(problem, "stderr", None) or str(problem)
            print("# " + str(detail).strip().replace("\n", "\n# "))
            good = False
        failed |= not good
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
