#!/usr/bin/env python3
# tests/tool/discovering.py -- pools of GPUs from what nvidia-smi lists, here and elsewhere.
#
#   discovering.py DIBSD DIBS     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import os
import sys

from tap import case, expect, expect_equal, main

# As a host printed them: two whole GPUs, and one that is divided.
LISTING = """\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)
GPU 2: NVIDIA A100-SXM4-40GB (UUID: GPU-b1028956-cfa2-0990-bf4a-5da9abb51763)
  MIG 3g.20gb     Device  0: (UUID: MIG-c7384736-a75d-5afc-978f-d2f1294409fd)
  MIG 1g.5gb+me   Device  1: (UUID: MIG-28dc86f4-f6c3-5a07-a5f7-4e1b6b1bcdd8)
  MIG 3g.20gb     Device  2: (UUID: MIG-a16adc7b-9b2c-5fd0-8a50-b6f50a1f3d4c)
GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77, 40960 MiB
GPU-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f, 40960
GPU-b1028956-cfa2-0990-bf4a-5da9abb51763, 40960 MiB
"""
FAKE = """#!/bin/sh
case "$1" in
-L) head -n 6 "$0.listing" ;;
*) tail -n 3 "$0.listing" ;;
esac
"""


def listed(place, text):
    file = place.folder / "gpus.txt"
    file.write_text(text)
    return place.run("discover", "gpu", "--listing", str(file)), str(file)


@case("discover gpu: a pool of whole GPUs and one for each MIG profile, which a broker serves")
def pools(place):
    (code, out, err), _ = listed(place, LISTING)
    expect_equal((code, err), (0, ""))
    config = place.folder / "gpus.toml"
    config.write_text(out)
    expect_equal(place.run("config", "check", str(config))[0], 0)
    place.start(out)
    show = 'echo "$CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER $DIBS_ATTR_INDEX $DIBS_ATTR_MEMORY"'
    expect_equal(place.run("exec", "gpu", "--", "sh", "-c", show)[1],
                 "GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77 PCI_BUS_ID 0 40960MiB\n")
    expect_equal(place.run("exec", "gpu:2", "--now", "--", "true")[0], 0)
    expect_equal(place.run("exec", "gpu-3g.20gb:2", "--now", "--", "true")[0], 0)
    expect_equal(place.run("exec", "gpu-1g.5gb-me", "--", "sh", "-c", show)[1],
                 "MIG-28dc86f4-f6c3-5a07-a5f7-4e1b6b1bcdd8 PCI_BUS_ID 2:1 \n")


@case("discover gpu: asks nvidia-smi; says so where it is not, or fails")
def asks(place):
    folder = place.folder / "bin"
    folder.mkdir()
    smi = folder / "nvidia-smi"
    path = {"PATH": f"{folder}:{os.environ['PATH']}"}
    expect_equal(place.run("discover", "gpu"),
                 (4, "", "dibs discover: nvidia-smi is not here, which lists GPUs; --listing FILE reads "
                         "what it printed elsewhere\n"))
    (folder / "nvidia-smi.listing").write_text(LISTING)
    smi.write_text(FAKE)
    smi.chmod(0o755)
    expect_equal(place.run("discover", "gpu", environment=path)[1], listed(place, LISTING)[0][1])
    expect(place.run("discover", "gpu", "--pool", "big", environment=path)[1].startswith('[[pool]]\nname = "big"\n'),
           "the name")
    smi.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed: no driver' >&2; exit 9\n")
    expect_equal(place.run("discover", "gpu", environment=path),
                 (1, "", "dibs discover: LC_ALL=C nvidia-smi -L failed: NVIDIA-SMI has failed: no driver\n"))


@case("discover gpu: what is no listing is refused with its line; nothing is printed")
def broken(place):
    for text in ("GPU 0: A\n", "GPU x: A (UUID: GPU-1)\n", "  MIG 1g.5gb Device 0: (UUID: MIG-1)\n",
                 "hello\n", 'GPU 0: A" (UUID: GPU-1)\n', "GPU-1, many\n", "GPU-1, 18446744073709551616\n"):
        (code, out, err), file = listed(place, "\n" + text)
        expect_equal((code, out), (1, ""))
        expect_equal(err, f'dibs discover: {file}:2: "{text.strip()}" is no line of `nvidia-smi -L`, nor '
                          '"UUID, memory"\n')
    expect_equal(listed(place, "")[0], (4, "", "dibs discover: no GPU is listed\n"))
    expect_equal(place.run("discover", "gpu", "--listing", "/no/file"),
                 (1, "", "dibs discover: /no/file: No such file or directory\n"))
    expect_equal(place.run("discover", "tpu"),
                 (2, "", 'dibs discover: "tpu": dibs can only discover gpu\n'))
    expect_equal(place.run("discover", "gpu", "--pool", "no name")[0], 2)


if __name__ == "__main__":
    main(sys.argv)
