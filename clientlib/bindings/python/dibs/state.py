# clientlib/bindings/python/dibs/state.py -- the broker's whole state as one snapshot, out and in;
# for administrators.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from typing import Protocol, Union

from . import _abi, errors
from ._abi import library


class HasFileno(Protocol):
    def fileno(self) -> int: ...


def _descriptor(file: Union[int, HasFileno]) -> int:
    return file if isinstance(file, int) else file.fileno()


def _options(socket: Union[str, None]) -> _abi.ConnectOptions:
    made: _abi.ConnectOptions = _abi.ConnectOptions.sized(
        socket_path=os.fsencode(socket) if socket is not None else None)
    return made


def dump(file: Union[int, HasFileno], socket: Union[str, None] = None) -> None:
    """Writes the state, as it stands between two turns, to an open file or descriptor."""
    errors.check(library.dibs_dump(_options(socket), _descriptor(file)))


def load(file: Union[int, HasFileno], socket: Union[str, None] = None) -> None:
    """Makes a snapshot the state of the broker, to which nobody is attached. WrongState: it was
    refused, and nothing has changed."""
    errors.check(library.dibs_load(_options(socket), _descriptor(file)))
