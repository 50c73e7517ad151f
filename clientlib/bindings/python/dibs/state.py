# clientlib/bindings/python/dibs/state.py -- the broker's whole state as one snapshot, out and in;
# for administrators.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any, Callable, Protocol, Union

from . import _abi, errors
from ._abi import library


class HasFileno(Protocol):
    def fileno(self) -> int: ...


def _descriptor(file: Union[int, HasFileno]) -> int:
    return file if isinstance(file, int) else file.fileno()


def asked(socket: Union[str, None], ask: Callable[[_abi.ConnectOptions], int]) -> int:
    to = _abi.ConnectOptions.to(socket)
    code = ask(to)
    if code < 0:
        raise errors.of_code(code, to.why)
    return code


def _ask(function: Any, socket: Union[str, None], file: Union[int, HasFileno]) -> None:
    asked(socket, lambda to: int(function(to, _descriptor(file))))


def dump(file: Union[int, HasFileno], socket: Union[str, None] = None) -> None:
    """Writes the state, as it stands between two turns, to an open file or descriptor."""
    _ask(library.dibs_dump, socket, file)


def load(file: Union[int, HasFileno], socket: Union[str, None] = None) -> None:
    """Makes a snapshot the state of the broker, to which nobody is attached. WrongState: it was
    refused, and nothing has changed."""
    _ask(library.dibs_load, socket, file)
