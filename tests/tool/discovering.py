#!/usr/bin/env python3
# tests/tool/discovering.py -- pools of GPUs from what each vendor's tool lists, here and elsewhere.
#
#   discovering.py DIBSD DIBS     speaks TAP
#
# gpu_listings/ has listings in the form of each tool, so that no GPU is needed.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import sys

from tap import case, expect, expect_equal, main

MASKS = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
for name in MASKS:
    os.environ.pop(name, None)

LISTINGS = pathlib.Path(__file__).resolve().parent / "gpu_listings"
NVIDIA, AMD, AMD_E, AMD_STATIC, ROCM, INTEL, INTEL_1 = (
    (LISTINGS / file).read_text() for file in (
        "nvidia-smi.txt", "amd-smi-list.json", "amd-smi-list-e.json", "amd-smi-static.json", "rocm-smi.json",
        "xpu-smi.json", "xpu-smi-1.json"))
A0, A1 = "GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77", "GPU-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f"
MIG0 = "MIG-c7384736-a75d-5afc-978f-d2f1294409fd"

# Each tool as far as it is asked; of amd-smi one that does not know -e, too.
FAKES = {
    "nvidia-smi": f'file={LISTINGS}/nvidia-smi.txt; case "$1" in -L) head -n 6 $file ;; *) tail -n 3 $file ;; esac',
    "amd-smi": f'case "$*" in "list -e --json") cat {LISTINGS}/amd-smi-list-e.json ;; '
               f'"static --asic --vram --json") cat {LISTINGS}/amd-smi-static.json ;; *) exit 9 ;; esac',
    "rocm-smi": f'cat {LISTINGS}/rocm-smi.json',
    "xpu-smi": f'case "$*" in "discovery -j") cat {LISTINGS}/xpu-smi.json ;; '
               'discovery\\ --dump\\ 1) printf "Device ID\\n0\\n1\\n" ;; '
               f'"discovery -d 1 -j") cat {LISTINGS}/xpu-smi-1.json ;; '
               '"discovery -d 0 -j") echo \'{"device_id":0}\' ;; *) exit 9 ;; esac',
}
OLD_AMD = (f'case "$*" in "list --json") cat {LISTINGS}/amd-smi-list.json ;; static*) echo "[]" ;; '
           '*) echo "usage: amd-smi"; exit 2 ;; esac')
NOT_LISTED = ("; dibs reads `nvidia-smi -L`, `amd-smi list --json`, `rocm-smi --showuniqueid --json` and "
              "`xpu-smi discovery -j`\n")


def listed(place, text, *options, **masks):
    file = place.folder / "gpus.txt"
    file.write_text(text)
    return place.run("discover", "gpu", "--listing", str(file), *options, environment=masks), str(file)


def pools_in(place, text, *options, **masks):
    (code, out, err), _ = listed(place, text, *options, **masks)
    expect_equal((code, err), (0, ""))
    return out


def slots_of(text, key):
    """The value of `key` in each slot, pool by pool."""
    return [line.split(f' {key} = "')[1].split('"')[0] if f' {key} = "' in line else None
            for line in text.splitlines() if line.startswith("    {")]


def install(place, fakes):
    """A folder with these tools in front of the system's; none of them is a vendor's, say these tests."""
    folder = place.folder / "bin"
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    for tool, script in fakes.items():
        (folder / tool).write_text("#!/bin/sh\n" + script + "\n")
        (folder / tool).chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def shown(place, pool, *variables):
    """The values of these variables in a command that holds slots of the pool."""
    code, out, err = place.run("exec", pool, "--", "sh", "-c",
                               "echo " + "/".join(f"${variable}" for variable in variables))
    expect_equal((code, err), (0, ""))
    return out.strip().split("/")


@case("discover gpu: a pool of whole GPUs and one for each MIG profile, which a broker serves")
def pools(place):
    out = pools_in(place, NVIDIA)
    config = place.folder / "gpus.toml"
    config.write_text(out)
    expect_equal(place.run("config", "check", str(config))[0], 0)
    place.start(out)
    variables = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "DIBS_ATTR_INDEX", "DIBS_ATTR_MEMORY")
    expect_equal(shown(place, "gpu", *variables), [A0, "PCI_BUS_ID", "0", "40960MiB"])
    expect_equal(shown(place, "gpu:2", *variables[1:2]), ["PCI_BUS_ID"])
    expect_equal(place.run("exec", "gpu:2", "--now", "--", "true")[0], 0)
    expect_equal(place.run("exec", "gpu-3g.20gb:2", "--now", "--", "true")[0], 0)
    expect_equal(shown(place, "gpu-1g.5gb-me", *variables),
                 ["MIG-28dc86f4-f6c3-5a07-a5f7-4e1b6b1bcdd8", "PCI_BUS_ID", "2:1", ""])


@case("discover gpu: AMD's by UUID where one names one device, else as ROCr counts")
def amd(place):
    out = pools_in(place, AMD)
    expect_equal(slots_of(out, "device"), ["0", "GPU-b7d181671a192e45", "GPU-9f444a2fb30adeb0"])
    expect_equal(slots_of(out, "index"), ["0", "1", "2"])
    parts = pools_in(place, AMD_E + AMD_STATIC)  # two parts of one GPU have one UUID
    expect_equal(slots_of(parts, "device"), ["0", "1", "GPU-b7d181671a192e45"])
    expect_equal(slots_of(parts, "name"), ["AMD Instinct MI325X", None, None])
    expect_equal(slots_of(parts, "memory"), ["262128MiB", None, None])
    expect_equal(slots_of(pools_in(place, '{"gpu_data":' + AMD + "}"), "device"), slots_of(out, "device"))
    place.start(out)
    expect_equal(shown(place, "gpu:3", "ROCR_VISIBLE_DEVICES"),
                 ["0,GPU-b7d181671a192e45,GPU-9f444a2fb30adeb0"])


@case("discover gpu: what rocm-smi prints, a warning before it")
def rocm(place):
    out = pools_in(place, ROCM)
    expect_equal(slots_of(out, "device"), ["GPU-ac1b58f8c066790f", "GPU-009d230578348e8c", "2"])
    expect_equal(slots_of(out, "name"), ["Navi 21 [Radeon RX 6800  6900 XT]", "Radeon RX 7900 XTX", None])
    expect_equal(slots_of(out, "memory"), ["16368MiB", "24560MiB", "512MiB"])


@case("discover gpu: Intel's by their place on the bus, as Level Zero is told to count")
def intel(place):
    out = pools_in(place, INTEL + INTEL_1)
    expect_equal(slots_of(out, "uuid"),
                 ["00000000-0000-0029-0000-002f0bda8086", "00000000-0000-009a-0000-002f0bda8086"])
    expect_equal(slots_of(out, "memory"), ["49152MiB", None])
    place.start(out)
    expect_equal(shown(place, "gpu:2", "ZE_AFFINITY_MASK", "ZE_ENABLE_PCI_ID_DEVICE_ORDER",
                       "ZE_FLAT_DEVICE_HIERARCHY"), ["0,1", "1", "COMPOSITE"])


@case("discover gpu: asks every tool that is there; each vendor has its own pools")
def asks(place):
    for tool, text in (("nvidia-smi", NVIDIA), ("amd-smi", AMD_E + AMD_STATIC), ("rocm-smi", ROCM),
                       ("xpu-smi", INTEL + INTEL_1)):
        code, out, err = place.run("discover", "gpu", environment=install(place, {tool: FAKES[tool]}))
        expect_equal((code, err), (0, ""))
        expect_equal(out, pools_in(place, text))
    code, out, err = place.run("discover", "gpu", "--pool", "big", environment=install(place, FAKES))
    expect_equal((code, err), (0, ""))
    expect_equal(out, "\n".join(pools_in(place, text, "--pool", pool) for text, pool in (
        (NVIDIA, "big-nvidia"), (AMD_E + AMD_STATIC, "big-amd"), (INTEL + INTEL_1, "big-intel"))))
    old = install(place, {"amd-smi": OLD_AMD, "rocm-smi": FAKES["rocm-smi"]})
    expect_equal(place.run("discover", "gpu", environment=old)[1], pools_in(place, AMD))
    # A tool that lists nothing is as good as none.
    some = install(place, {"nvidia-smi": FAKES["nvidia-smi"], "xpu-smi": "echo '{\"device_list\":null}'"})
    expect_equal(place.run("discover", "gpu", environment=some)[1], pools_in(place, NVIDIA))


@case("discover gpu: says so where no tool is, or where one fails")
def asks_in_vain(place):
    expect_equal(place.run("discover", "gpu", environment=install(place, {})),
                 (4, "", "dibs discover: none of nvidia-smi, amd-smi, rocm-smi and xpu-smi is here, which list GPUs: "
                         "install that of your GPUs' driver, or give --listing FILE what it printed elsewhere\n"))
    fakes = FAKES | {"nvidia-smi": "echo 'NVIDIA-SMI has failed: no driver' >&2; exit 9"}
    expect_equal(place.run("discover", "gpu", environment=install(place, fakes)),
                 (1, "", "dibs discover: nvidia-smi failed: NVIDIA-SMI has failed: no driver; of another vendor's "
                         "GPUs, --listing FILE reads what its tool printed\n"))
    expect_equal(place.run("discover", "gpu", environment=install(place, {"xpu-smi": "echo '[]]'"})),
                 (1, "", "dibs discover: xpu-smi:1: this is no JSON" + NOT_LISTED))


@case("discover gpu: what is no listing is refused with its place; nothing is printed")
def broken(place):
    for text in ("GPU 0: A\n", "GPU x: A (UUID: GPU-1)\n", "  MIG 1g.5gb Device 0: (UUID: MIG-1)\n",
                 "hello\n", 'GPU 0: A" (UUID: GPU-1)\n', "GPU-1, many\n", "GPU-1, 18446744073709551616\n"):
        (code, out, err), file = listed(place, "\n" + text)
        expect_equal((code, out), (1, ""))
        expect_equal(err, f'dibs discover: {file}:2: "{text.strip()}" is no line of `nvidia-smi -L`, nor '
                          '"UUID, memory"' + NOT_LISTED)
    unfit, unnumbered = 'JSON without "gpu", "card0" or "device_list"', "JSON of a device without its number"
    for text, what in (("{}", unfit), ('{"error":"no device"}', unfit), (AMD + "5", unfit), ("[1]", unnumbered),
                       ('[{"gpu":"x"}]', unnumbered), ('{"device_list":[{"device_id":-1}]}', unnumbered),
                       ('{"cardx":{}}', unnumbered), ('[{"gpu":99999999999999999999}]', unnumbered),
                       ('{"card0":5}', '"0" is no object of JSON'), (AMD + INTEL, "JSON of two vendors"),
                       (INTEL_1 + ROCM[ROCM.index("{"):], "JSON of two vendors")):
        (code, out, err), file = listed(place, text)
        expect_equal((code, out, err), (1, "", f"dibs discover: {file}: {what}{NOT_LISTED}"))
    for text, line in (("a warning\n[\n  {\n", 4), ("[]\n[{\"gpu\":\n0,,\n}]", 3), ("[1e999]", 1),
                       (AMD + "warning", AMD.count("\n") + 1)):
        (code, out, err), file = listed(place, text)
        expect_equal((code, out, err), (1, "", f"dibs discover: {file}:{line}: this is no JSON{NOT_LISTED}"))
    expect_equal(listed(place, "")[0], (4, "", "dibs discover: no GPU is listed\n"))
    expect_equal(listed(place, "[]")[0], (4, "", "dibs discover: no GPU is listed\n"))
    expect_equal(place.run("discover", "gpu", "--listing", "/no/file"),
                 (1, "", "dibs discover: /no/file: No such file or directory\n"))
    expect_equal(place.run("discover", "tpu"),
                 (2, "", 'dibs discover: "tpu": dibs can only discover gpu\n'))
    expect_equal(place.run("discover", "gpu", "--pool", "no name")[0], 2)
    expect_equal(listed(place, NVIDIA, "--pool", "p" * 60)[0][0], 2)  # "…-1g.5gb-me" is too long


@case("discover gpu: of what CUDA_VISIBLE_DEVICES leaves, as CUDA reads it")
def cuda_mask(place):
    for mask, indices in (("1", ["1"]), ("1,0", ["1", "0"]), (" 0 , 1", ["0", "1"]), (A1, ["1"]),
                          ("GPU-c6,0", ["1", "0"]), ("gpu-C6D4", ["1"]), (MIG0 + ",0", ["0", "2:0"]),
                          ("2", ["2:1", "2:0", "2:2"]),
                          ("GPU-b1", ["2:1", "2:0", "2:2"]),
                          # the list ends at what names no device, more than one, or one again
                          ("0,7,1", ["0"]), ("0,-1,1", ["0"]), ("0,x,1", ["0"]), ("0,,1", ["0"]), ("1,1,0", ["1"]),
                          ("0,MIG-,1", ["0"]), ("1,GPU-", ["1"])):
        out = pools_in(place, NVIDIA, CUDA_VISIBLE_DEVICES=mask)
        expect_equal((mask, slots_of(out, "index")), (mask, indices))
        expect_equal(out.splitlines()[0],
                     f"# CUDA_VISIBLE_DEVICES={mask} leaves {len(indices)} of 5 devices; "
                     "dibs discover gpu --all writes all.")
        expect_equal(pools_in(place, NVIDIA, "--all", CUDA_VISIBLE_DEVICES=mask), pools_in(place, NVIDIA))
    for mask in ("", "-1", "NoDevFiles", "7"):
        expect_equal(listed(place, NVIDIA, CUDA_VISIBLE_DEVICES=mask)[0],
                     (4, "", f"dibs discover: CUDA_VISIBLE_DEVICES={mask} leaves 0 of 5 devices; "
                             "dibs discover gpu --all writes all.\n"))
    code, out, _ = listed(place, NVIDIA, CUDA_VISIBLE_DEVICES="0,\n[[pool]]\x1b")[0]
    expect_equal((code, out.splitlines()[0][:42]), (0, "# CUDA_VISIBLE_DEVICES=0,?[[pool]]? leaves"))


@case("discover gpu: other vendors' masks; what one vendor's says is nothing to another's")
def other_masks(place):
    for masks, indices in (({"ROCR_VISIBLE_DEVICES": "2,0"}, ["2", "0"]),
                           ({"ROCR_VISIBLE_DEVICES": "GPU-B7D1"}, ["1"]),
                           ({"HIP_VISIBLE_DEVICES": "1"}, ["1"]),
                           ({"ROCR_VISIBLE_DEVICES": "2,0", "HIP_VISIBLE_DEVICES": "1"}, ["0"]),
                           ({"ROCR_VISIBLE_DEVICES": "2,0", "HIP_VISIBLE_DEVICES": "0,2,1"}, ["2"]),
                           ({"ROCR_VISIBLE_DEVICES": "0,GPU-b7", "HIP_VISIBLE_DEVICES": "GPU-b7,0"}, ["1", "0"]),
                           ({"CUDA_VISIBLE_DEVICES": "", "ZE_AFFINITY_MASK": "0"}, ["0", "1", "2"])):
        expect_equal(slots_of(pools_in(place, AMD, **masks), "index"), indices)
    expect_equal(slots_of(pools_in(place, INTEL, ZE_AFFINITY_MASK="1"), "index"), ["1"])
    expect_equal(pools_in(place, INTEL, ZE_AFFINITY_MASK=""), pools_in(place, INTEL))
    # A vendor that is left nothing keeps its line, and the others their names.
    out = place.run("discover", "gpu", environment=install(place, FAKES) | {"ROCR_VISIBLE_DEVICES": ""})[1]
    expect("\n# ROCR_VISIBLE_DEVICES= leaves 0 of 3 devices; " in out, out)
    expect('"gpu-amd"' not in out and '"gpu-nvidia"' in out and '"gpu-intel"' in out, out)


if __name__ == "__main__":
    main(sys.argv)
