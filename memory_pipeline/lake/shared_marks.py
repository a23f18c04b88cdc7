"""The marks of a lake in object storage, shared by all of its workspaces: time zone, first day, salt, and the server
that builds its memory, if any.

With different zones or salts, workspaces would rebuild each other's days, and words forgotten in one would return
through the other. The marks are objects in `marks/`, each created once by a conditional PUT; a workspace keeps a copy,
so that settings are read without a request. Access to the bucket must be as restricted as to the transcripts: who can
read it can read the salt.
"""

from __future__ import annotations

import os
import socket
from functools import cache
from typing import TYPE_CHECKING

from memory_pipeline.errors import CannotGoOnError
from memory_pipeline.lake.storage import ReplacedMeanwhileError, Storage, storage_of
from memory_pipeline.settings import marks as workspace_marks
from memory_pipeline.settings.marks import FIRST_DAY, SALT, SALT_BYTES, ZONE

if TYPE_CHECKING:
    from memory_pipeline.settings import Settings

_SERVER = "server"
_NAMES = {ZONE: "time zone", FIRST_DAY: "first day", SALT: "salt"}


class OtherMarksError(CannotGoOnError):
    """The lake has another time zone or salt than the workspace."""


class ServedElsewhereError(CannotGoOnError):
    """A server builds the memory of this lake; two builders would rebuild each other's days."""


def is_shared(settings: Settings) -> bool:
    """Whether several workspaces may use the lake."""
    return settings.lake is not None and not settings.lake.startswith("file:")


def take_over(settings: Settings) -> bool:
    """Copy marks of the lake that the workspace lacks into the workspace. Returns whether there were any.

    The bucket is only read while a mark is missing. Raises `LakeUnavailableError` and `LakeRefusedError`.
    """
    if not is_shared(settings):
        return False
    lacking = [name for name in _NAMES if workspace_marks.content(settings.workspace, name) is None]
    found = {name: data for name in lacking if (data := _read(storage_of(settings), name)) is not None}
    for name, data in found.items():
        workspace_marks.make(settings.workspace, name, data)
    return bool(found)


def share_zone(settings: Settings) -> None:
    """Store the workspace's zone in the lake, if it has none yet, and likewise the salt of a workspace from before
    salts were shared. Raises `OtherMarksError` if the lake has another."""
    if is_shared(settings):
        _share_mark(settings, ZONE, f"{settings.timezone}\n".encode())
        if salt := workspace_marks.content(settings.workspace, SALT):
            _share_mark(settings, SALT, salt)


def share_first_day(settings: Settings) -> None:
    """Store the workspace's first day in the lake, if it has none yet. A different one only hides days."""
    if day := workspace_marks.content(settings.workspace, FIRST_DAY):
        _agree_on(storage_of(settings), FIRST_DAY, day)


def make_salt(settings: Settings) -> None:
    """Copy the lake's salt into a workspace without one; create a new salt if neither has one."""
    if is_shared(settings) and workspace_marks.content(settings.workspace, SALT) is None:
        agreed = _agree_on(storage_of(settings), SALT, os.urandom(SALT_BYTES))
        workspace_marks.make(settings.workspace, SALT, agreed)


def serve(settings: Settings) -> None:
    """Register this machine as the one that builds the lake's memory, unless another is registered."""
    if is_shared(settings):
        _agree_on(storage_of(settings), _SERVER, f"{socket.gethostname()}\n".encode())


def refuse_beside_a_server(settings: Settings) -> None:
    """Raise `ServedElsewhereError` if a server is registered for the lake."""
    if is_shared(settings) and (name := _read(storage_of(settings), _SERVER)) is not None:
        server = name.decode("utf-8", "replace").strip()
        raise ServedElsewhereError(
            f"The lake {settings.lake} is run with --no-review on {server}: a run here would rebuild its days. Here "
            "`memory admin push` sends and `memory review` reviews. To run it here from now on, stop those runs and "
            f"delete {settings.lake}/{_key(_SERVER)}."
        )


def _share_mark(settings: Settings, name: str, data: bytes) -> None:
    if _agree_on(storage_of(settings), name, data) != data:
        raise OtherMarksError(
            f"The lake {settings.lake} has another {_NAMES[name]} than the workspace {settings.workspace}: expected "
            "the same, else each would rebuild the other's days. Name another MEMORY_WORKSPACE (a new one takes over "
            "what the lake has) or another MEMORY_LAKE."
        )


@cache
def _agree_on(storage: Storage, name: str, data: bytes) -> bytes:
    """The value of this mark in the lake, after offering this one. Requested once per process, as it never changes."""
    if (there := _read(storage, name)) is not None:
        return there
    try:
        storage.write(_key(name), data, expected=None)
    except ReplacedMeanwhileError:  # by another workspace at the same time
        return _read(storage, name) or data
    return data


def _read(storage: Storage, name: str) -> bytes | None:
    state = storage.state(_key(name))
    return None if state is None else storage.read(state)


def _key(name: str) -> str:
    return f"marks/{name}"
