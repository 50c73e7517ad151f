# tests/python/test_abi.py -- the ctypes declarations against what a C compiler makes of dibs.h.
# SPDX-License-Identifier: Apache-2.0
import ctypes
import inspect
import os
import re
import subprocess

import dibs
import pytest
from dibs import _abi, errors

from conftest import ROOT

HEADER = (ROOT / "clientlib/include/dibs/dibs.h").read_text()
CODES = dict(re.findall(r"^    (DIBS_E\w+|DIBS_OK|DIBS_ALREADY_ENDED) = (-?\d+)", HEADER, re.M))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """What is asked for, as C expressions; the answers, as numbers."""
    folder = tmp_path_factory.mktemp("abi")

    def values(expressions):
        source = "#include <dibs/dibs.h>\n#include <stdio.h>\nint main(void) {\n"
        source += "".join(f'printf("%lld\\n", (long long)({item}));\n' for item in expressions)
        (folder / "ask.c").write_text(source + "return 0;\n}\n")
        subprocess.run([os.environ.get("CC", "cc"), "-I", ROOT / "clientlib/include", "-o",
                        folder / "ask", folder / "ask.c"], check=True)
        answer = subprocess.run([folder / "ask"], check=True, capture_output=True, text=True)
        return dict(zip(expressions, map(int, answer.stdout.split())))
    return values


def test_every_struct_has_the_headers_size_and_offsets(compiled):
    expected = {}
    for name, struct in _abi.STRUCTS.items():
        expected[f"sizeof({name})"] = ctypes.sizeof(struct)
        for field in struct.names():
            expected[f"offsetof({name}, {field})"] = getattr(struct, field).offset
            expected[f"sizeof((({name} *)0)->{field})"] = getattr(struct, field).size
    assert compiled(list(expected)) == expected
    assert len(expected) > 200


def test_every_number_is_the_headers(compiled):
    names = [name for name, value in vars(_abi).items() if name.isupper() and type(value) is int]
    expected = {f"DIBS_{name}": getattr(_abi, name) for name in names}
    found = compiled(list(expected))
    assert {name: value % 2**64 for name, value in found.items()} == \
        {name: value % 2**64 for name, value in expected.items()}
    assert len(expected) > 30


def test_every_struct_of_the_header_is_declared():
    declared = set(re.findall(r"^typedef struct (\w+) {", HEADER, re.M))
    declared |= set(re.findall(r"^struct (\w+) {", HEADER, re.M))
    assert set(_abi.STRUCTS) <= declared


def test_every_function_takes_as_many_arguments_as_in_the_header():
    text = re.sub(r"\s+", " ", HEADER)
    for name, arguments in _abi.FUNCTIONS.items():
        found = re.search(rf"DIBS_API [\w ]+\*? ?{name}\((.*?)\);", text)
        assert found, name
        count = 0 if found[1] == "void" else found[1].count(",") + 1
        assert len(arguments) == count, name


def test_every_code_of_the_header_has_an_exception():
    codes = {int(value): name for name, value in CODES.items() if int(value) < 0}
    codes[_abi.ALREADY_ENDED] = "DIBS_ALREADY_ENDED"
    assert len(codes) > 40
    assert {codes.get(code) for code in set(codes) ^ set(errors.BY_CODE)} == set()


def test_a_code_of_a_newer_library_is_an_error_with_its_number():
    error = errors.of_code(-4711)
    assert type(error) is errors.Error and error.code == -4711


def test_the_types_are_declared_and_the_names_are_there():
    assert (ROOT / "clientlib/bindings/python/dibs/py.typed").exists()
    for name in dibs.__all__:
        assert getattr(dibs, name) is not None
    for function in (dibs.Client.claim, dibs.connect, dibs.aio.connect):
        assert "return" in inspect.get_annotations(function)


def test_mypy_has_nothing_to_say():
    try:
        checked = subprocess.run(["/usr/bin/mypy", "--strict", "--cache-dir", os.devnull, "-p",
                                  "dibs"], cwd=ROOT / "clientlib/bindings/python",
                                 capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("mypy is not installed")
    assert checked.returncode == 0, checked.stdout
