#!/usr/bin/env python3
# tests/tool/closed_descriptors.py -- dibsd begun without standard input, output or error: their numbers are
# nobody else's.
#
#   closed_descriptors.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import os
import signal
import subprocess
import sys

from tap import case, expect, expect_equal, main


def standard(pid):
    return [os.readlink(f"/proc/{pid}/fd/{number}") for number in range(3)]


def leader(place):
    """The broker's pid, once one other than before serves."""
    text = place.run("status", "-o", "json")[1]
    return int(text.split('"pid":')[1].split(",")[0])


@case("what is closed is /dev/null to broker and keeper, and to those that follow")
def closed(place):
    def close():
        for number in range(3):
            os.close(number)
    config = place.folder / "closed.toml"
    config.write_text('[[pool]]\nname = "tokens"\nkind = "counted"\nslots = 2\n')
    keeper = subprocess.Popen([place.dibsd, "--config", str(config), "--socket", place.socket],
                              preexec_fn=close, close_fds=False)
    try:
        while place.run("status")[0] != 0:
            pass
        expect_equal(place.run("exec", "tokens", "--", "true")[0], 0)
        expect_equal(standard(keeper.pid), ["/dev/null"] * 3)
        first = leader(place)
        expect_equal(standard(first), ["/dev/null"] * 3)
        os.kill(first, signal.SIGKILL)
        while place.run("status")[0] != 0 or leader(place) == first:
            pass
        expect_equal(standard(leader(place)), ["/dev/null"] * 3)
        expect(not list(place.folder.glob("failed-*")), "a state was put aside")
    finally:
        keeper.terminate()
        keeper.wait(timeout=60)


if __name__ == "__main__":
    main(sys.argv)
