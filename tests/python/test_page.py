# tests/python/test_page.py -- the examples of docs/python.md, one after the other.
# SPDX-License-Identifier: Apache-2.0
import os
import re
import subprocess
import sys
import tempfile

from conftest import ROOT, Dibsd

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_example_of_the_page_runs():
    blocks = BLOCK.findall((ROOT / "docs/python.md").read_text())
    config = next(text for kind, text in blocks if kind == "toml")
    examples = [text for kind, text in blocks if kind == "python"]
    said = []
    with tempfile.TemporaryDirectory() as folder:
        dibsd = Dibsd(folder, 'log_level = "warning"\n' + config)
        path = ROOT / "clientlib/bindings/python"
        for example in examples:
            ended = subprocess.run([sys.executable, "-W", "error", "-c", example], capture_output=True, text=True,
                                   timeout=60, check=False,
                                   env=os.environ | {"DIBS_SOCKET": dibsd.socket, "PYTHONPATH": str(path)})
            assert (ended.returncode, ended.stderr) == (0, ""), example
            said.append(ended.stdout)
        dibsd.end()
    assert said[0].startswith("device 0 fence ")
    assert said[1].startswith("none free: ") and said[1].endswith("0 of 2 are idle\nENDED\n")
    assert sorted(said[2].split()) == ["0", "1", "devices"]
    assert said[3:] == ["500\n", "b'<p>hello</p>'\n"]
