#!/bin/bash
# tests/arm64/emulated.sh -- compiles everything for arm64, and plays it there by qemu.
#
#   emulated.sh TREE      by hand and as root; the last line is the sum
#
# TREE is a folder with a Debian 12 of its own, made here if it is not there, so that this machine
# gets no packages of another architecture. The committed tree is what is built. Played is what one
# CPU can judge: scenarios, the bytes of every replay against those of x86-64, both cores, crash
# images, recordings, snapshots, a client and its broker. Not what sleeps and wakes across CPUs:
# qemu 7.2 on x86-64 lets a load overtake an earlier store-release, which arm64 does not.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
(($# == 1)) || { sed -n 's/^# \{0,1\}//; 2,5p' "$0" >&2; exit 2; }
tree=$(realpath -m "$1")
cd "$(dirname "$0")/../.."

[[ -e $tree/bin/bash ]] || debootstrap --variant=minbase bookworm "$tree" http://deb.debian.org/debian
formats=/proc/sys/fs/binfmt_misc
put_back() {
    [[ ! -e $formats/dibs-arm64 ]] || echo -1 >$formats/dibs-arm64
    umount "$tree/proc" "$tree/dev" || true
}
trap put_back EXIT
mount --bind /proc "$tree/proc"
mount --bind /dev "$tree/dev"
cp /etc/resolv.conf "$tree/etc/"
chroot "$tree" bash -euc '
    export DEBIAN_FRONTEND=noninteractive
    dpkg --add-architecture arm64
    apt-get update --quiet
    apt-get install --quiet --yes --no-install-recommends \
        g++ crossbuild-essential-arm64 meson ninja-build pkgconf ccache python3 git \
        flatbuffers-compiler libboost-dev nlohmann-json3-dev systemtap-sdt-dev scdoc groff-base \
        libcli11-dev libflatbuffers-dev:arm64 libspdlog-dev:arm64 libtomlplusplus-dev:arm64 \
        libseccomp-dev:arm64 prometheus-cpp-dev:arm64 libgtest-dev:arm64 \
        librapidcheck-dev:arm64 libbenchmark-dev:arm64 \
        qemu-user-static'

# Programs of that machine that a build runs: the kernel starts qemu for them.
[[ -e $formats/register ]] || mount -t binfmt_misc none $formats
machine='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
[[ -e $formats/dibs-arm64 ]] ||
    echo ":dibs-arm64:M::$machine:$mask:$tree/usr/bin/qemu-aarch64-static:F" >$formats/register

rm -rf "$tree/dibs"
mkdir "$tree/dibs"
git archive HEAD | tar -x -C "$tree/dibs"
chroot "$tree" bash -euc '
    cd /dibs
    export PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig
    meson setup build-arm64 --cross-file tests/arm64/cross.ini --unity on --unity-size 16 \
        -Dc_args=-g1 -Dcpp_args=-g1
    ninja -C build-arm64
    export DIBS_JOURNALS=200 DIBS_ACCOUNT_JOURNALS=40 DIBS_IMAGES=20000
    meson test -C build-arm64 --no-rebuild --print-errorlogs --timeout-multiplier 8 \
        scenarios replay_bytes agreement naive_core crash abi_layout abi_writers \
        snapshot recording "clientlib allocation" "clientlib shape" client_process || true
    python3 tests/tally.py build-arm64'
