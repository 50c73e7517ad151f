# clientlib/bindings/python/dibs/_amounts.py -- checks amounts of resources before the broker is asked, so that
# the one that is wrong is named.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
from typing import Any, Mapping, Union

from . import _abi
from ._session import strings
from .errors import BadVector

Amounts = Mapping[str, Union[int, str]]
AMOUNT_MAX = 2**53
SHIFTS = {"": 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}
SIZES = re.compile("[0-9]+|(?:[0-9]+(?:B|KiB|MiB|GiB|TiB))+")
SIZE = re.compile("([0-9]+)(B|KiB|MiB|GiB|TiB|)")


def _number(what: str, amount: Union[int, str]) -> int:
    text = str(amount)
    if re.fullmatch("-[0-9].*", text):
        raise BadVector(f"{what} is negative")
    if isinstance(amount, bool) or not SIZES.fullmatch(text):
        raise BadVector(f"{what} is no amount: write a whole number, or one with KiB, MiB, GiB or TiB")
    number = sum(int(digits) << SHIFTS[unit] for digits, unit in SIZE.findall(text))
    if number > AMOUNT_MAX:
        raise BadVector(f"{what} is above 2**53")
    return number


def texts(word: str, amounts: Amounts) -> tuple[Any, int]:
    """NAME=AMOUNT of each, as C has them, of the argument `word`."""
    if len(amounts) > _abi.RESOURCES_MAX:
        raise BadVector(f"{word}: at most {_abi.RESOURCES_MAX} resources, not {len(amounts)}")
    for name, amount in amounts.items():
        if not name or "=" in name or "\0" in name:
            raise BadVector(f"{word}: {name!r} is no resource's name")
        _number(f"{word} of {name}: {amount!r}", amount)
    return strings(f"{name}={amount}" for name, amount in amounts.items())


def check_something(word: str, amounts: Amounts) -> None:
    if not any(_number(word, amount) for amount in amounts.values()):
        raise BadVector(f"{word} is nothing of any resource")


def part(least: Amounts, most: Amounts) -> dict[str, Any]:
    """What is wanted of a slot, as the fields of a struct."""
    if most and not least:
        raise BadVector("most without least: say with least how much it is at least")
    fields: dict[str, Any] = {}
    fields["least"], fields["least_count"] = texts("least", least)
    fields["most"], fields["most_count"] = texts("most", most)
    if least:
        check_something("least", least)
    for name, amount in least.items() if most else ():
        if _number("least", amount) > _number("most", most.get(name, 0)):
            above = f"most, {most[name]!r}" if name in most else "most, which does not name it"
            raise BadVector(f"least of {name}: {amount!r} is above {above}")
    return fields
