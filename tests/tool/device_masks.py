#!/usr/bin/env python3
# tests/tool/device_masks.py -- `dibs exec` where the shell limits which GPUs a program may use.
#
#   device_masks.py DIBSD DIBS     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import os
import sys

from tap import case, expect, expect_equal, main

MASKS = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
for name in MASKS:
    os.environ.pop(name, None)

# Most with one slot a pool, so that which GPU is granted is no question of turns.
A, B, MIG = "GPU-5d5ba0d6-d33d", "GPU-c6d4f1ef-42e4", "MIG-c7384736-a75d"
CUDA = 'environment = { CUDA_VISIBLE_DEVICES = "uuid", CUDA_DEVICE_ORDER = "order" }\n'
PLAIN = 'environment = { CUDA_VISIBLE_DEVICES = "device" }\n'
ROCR = 'environment = { ROCR_VISIBLE_DEVICES = "device" }\n'
CONFIG = "".join(
    f'[[pool]]\nname = "{pool}"\nkind = "counted"\nslots = {len(slots)}\n'
    f'{environment}attributes = [{", ".join(slots)}]\n'
    for pool, environment, slots in (
        ("a", CUDA, [f'{{ uuid = "{A}", order = "PCI_BUS_ID", index = "0" }}']),
        ("b", CUDA, [f'{{ uuid = "{B}", order = "PCI_BUS_ID", index = "1" }}']),
        ("both", CUDA, [f'{{ uuid = "{A}", order = "PCI_BUS_ID", index = "0" }}',
                        f'{{ uuid = "{B}", order = "PCI_BUS_ID", index = "1" }}']),
        ("part", CUDA, [f'{{ uuid = "{MIG}", order = "PCI_BUS_ID", index = "2:0", gpu = "GPU-b1028956-cfa2" }}']),
        ("plain", PLAIN, ['{ device = "1" }']),
        ("pair", PLAIN, ['{ device = "1,0", index = "7" }']),
        ("amd", ROCR, ['{ device = "GPU-b7d181671a192e45", index = "1" }']),
        ("amd-2", ROCR, ['{ device = "GPU-9f444a2fb30adeb0", index = "2" }']),
        ("intel", 'environment = { ZE_AFFINITY_MASK = "index" }\n', ['{ index = "0" }']),
        ("core", "", ['{ index = "3" }'])))
SHOW = ("sh", "-c", 'echo "$CUDA_VISIBLE_DEVICES|$ROCR_VISIBLE_DEVICES|${HIP_VISIBLE_DEVICES-none}|$ZE_AFFINITY_MASK"')


def ran(place, pool, *command, **masks):
    """What the command printed; it must have run without a word."""
    code, out, err = place.run("exec", pool, "--", *(command or SHOW), environment=masks)
    expect_equal((code, err), (0, ""))
    return out.strip()


def refuse(place, pool, said, device, slots="0", **masks):
    """It is not started, all is said in one line, and the slots are there again."""
    expect_equal(place.run("exec", pool, "--", "echo", "started", environment=masks),
                 (78, "", f'dibs exec: {said} leaves out {device}, which slot {slots} of pool "{pool.split(":")[0]}" '
                          "gives: the command is not started, and the slot is given back. Unset it, or use a pool of "
                          "what is inside it, as dibs discover gpu prints it where it is set\n"))
    expect_equal(place.run("exec", pool, "--timeout", "60s", "--", "true")[0], 0)


@case("exec: an inherited mask is replaced by the GPU that was granted inside it")
def inside(place):
    place.start(CONFIG)
    for mask in ("0", "1,0", " 0", A, A.lower(), "GPU-5d", "GPU-c6,GPU-5d5", "0,x"):
        expect_equal((mask, ran(place, "a", CUDA_VISIBLE_DEVICES=mask)), (mask, f"{A}||none|"))
    for mask in (MIG, "2", "GPU-b1", "MIG-c7"):
        expect_equal((mask, ran(place, "part", CUDA_VISIBLE_DEVICES=mask)), (mask, f"{MIG}||none|"))
    expect_equal(ran(place, "both:2", CUDA_VISIBLE_DEVICES="1,0"), f"{A},{B}||none|")
    expect_equal(ran(place, "plain", CUDA_VISIBLE_DEVICES="1"), "1||none|")
    expect_equal(ran(place, "pair", CUDA_VISIBLE_DEVICES="0,1"), "1,0||none|")
    expect_equal(ran(place, "intel", ZE_AFFINITY_MASK="1,0"), "||none|0")
    expect_equal(ran(place, "intel", ZE_AFFINITY_MASK=""), "||none|0")
    expect_equal(ran(place, "core", CUDA_VISIBLE_DEVICES="5"), "5||none|")  # which sets none
    expect_equal(ran(place, "amd", CUDA_VISIBLE_DEVICES="5"), "5|GPU-b7d181671a192e45|none|")


@case("exec: a GPU outside of the inherited mask is given back, and the command not started: 78")
def outside(place):
    place.start(CONFIG)
    for mask in ("1", B, "GPU-c", "", "-1", "x,0", "NoDevFiles", "10", "GPU-", "2", "0.1"):
        refuse(place, "a", f"CUDA_VISIBLE_DEVICES={mask}", A, CUDA_VISIBLE_DEVICES=mask)
    refuse(place, "both:2", "CUDA_VISIBLE_DEVICES=0", B, "0,1", CUDA_VISIBLE_DEVICES="0")
    refuse(place, "part", "CUDA_VISIBLE_DEVICES=20", MIG, CUDA_VISIBLE_DEVICES="20")
    refuse(place, "plain", "CUDA_VISIBLE_DEVICES=GPU-5d", "1", CUDA_VISIBLE_DEVICES="GPU-5d")
    refuse(place, "pair", "CUDA_VISIBLE_DEVICES=1,7", "0", CUDA_VISIBLE_DEVICES="1,7")
    refuse(place, "intel", "ZE_AFFINITY_MASK=0.1", "0", ZE_AFFINITY_MASK="0.1")
    code, _, err = place.run("exec", "core", "--env", "ROCR_VISIBLE_DEVICES=index", "--", "true",
                             environment={"ROCR_VISIBLE_DEVICES": "2"})
    expect_equal((code, err[:46]), (78, "dibs exec: ROCR_VISIBLE_DEVICES=2 leaves out 3"))


@case("exec: HIP_VISIBLE_DEVICES counts what ROCR_VISIBLE_DEVICES leaves, and goes with it")
def hip(place):
    place.start(CONFIG)
    given = "|GPU-b7d181671a192e45|none|"
    for masks in ({"HIP_VISIBLE_DEVICES": "1"}, {"ROCR_VISIBLE_DEVICES": "2,1", "HIP_VISIBLE_DEVICES": "1"},
                  {"ROCR_VISIBLE_DEVICES": "GPU-B7D181671A192E45", "HIP_VISIBLE_DEVICES": "0"}):
        expect_equal(ran(place, "amd", **masks), given)
    refuse(place, "amd", "HIP_VISIBLE_DEVICES=0", "GPU-b7d181671a192e45", HIP_VISIBLE_DEVICES="0")
    refuse(place, "amd", "ROCR_VISIBLE_DEVICES=2,1 with HIP_VISIBLE_DEVICES=0", "GPU-b7d181671a192e45",
           ROCR_VISIBLE_DEVICES="2,1", HIP_VISIBLE_DEVICES="0")
    expect_equal(ran(place, "a", HIP_VISIBLE_DEVICES="0"), f"{A}||0|")  # which is not ROCr's


@case("exec under exec: what the outer one has set is no limit; what that one had to stay within is")
def nested(place):
    place.start(CONFIG)
    inner = (place.dibs, "exec", "b", "--", *SHOW)
    expect_equal(ran(place, "a", *inner), f"{B}||none|")
    expect_equal(ran(place, "a", *inner, CUDA_VISIBLE_DEVICES="0,1"), f"{B}||none|")
    expect_equal(ran(place, "a", place.dibs, "exec", "core", "--", *inner, CUDA_VISIBLE_DEVICES="0,1"), f"{B}||none|")
    other = (place.dibs, "exec", "amd-2", "--", *SHOW)
    expect_equal(ran(place, "amd", *other, HIP_VISIBLE_DEVICES="2,1"), "|GPU-9f444a2fb30adeb0|none|")
    code, out, err = place.run("exec", "amd", "--", *other, environment={"HIP_VISIBLE_DEVICES": "1"})
    expect_equal((code, out), (78, ""))
    expect(" leaves out GPU-9f444a2fb30adeb0" in err, err)
    for outer, command, said in (
            ("0", inner, "CUDA_VISIBLE_DEVICES=0, set outside of the calling dibs exec,"),
            ("0,1", ("env", "CUDA_VISIBLE_DEVICES=0", *inner), "CUDA_VISIBLE_DEVICES=0")):
        code, out, err = place.run("exec", "a", "--", *command, environment={"CUDA_VISIBLE_DEVICES": outer})
        expect_equal((code, out, err[:err.find(", which")]), (78, "", f"dibs exec: {said} leaves out {B}"))
    # Who unsets it under the outer one has none, and what is under that one neither.
    without = ("env", "-u", "CUDA_VISIBLE_DEVICES", place.dibs, "exec", "b", "--",
               place.dibs, "exec", "part", "--", *SHOW)
    expect_equal(ran(place, "a", *without, CUDA_VISIBLE_DEVICES="0"), f"{MIG}||none|")


if __name__ == "__main__":
    main(sys.argv)
