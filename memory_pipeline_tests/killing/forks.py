"""Processes that are killed: forked, so that two hundred of them cost minutes.

The one that forks must not have used polars before, whose threads do not survive it.
"""

from __future__ import annotations

import builtins
import io
import mmap
import os
import signal
import struct
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

HANGS_AFTER = 500.0
MOST_TOLD = 8000
"""Characters that fit into a pipe which nobody reads yet."""


class Failed(Exception):
    """A forked process raised; the message is what it printed."""


def forked(work: Callable[[], list[str] | None]) -> list[str]:
    """Do it in a process of its own, which may return some lines; raises `Failed`, also when it hangs."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            os.close(read)
            os.write(write, "\0".join(work() or [])[:MOST_TOLD].encode())
            code = 0
        except BaseException:
            os.write(write, traceback.format_exc()[-MOST_TOLD:].encode())
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        code = waited(pid, HANGS_AFTER)
        printed = pipe.read().decode("utf-8", "replace")
    if code:
        raise Failed(printed or f"status {code}")
    return printed.split("\0") if printed else []


def dies(work: Callable[[], None], after: float | None = None) -> bool:
    """Whether the process was killed, by itself or after so many seconds, before it was done."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    if after is not None:
        time.sleep(after)
        os.kill(pid, signal.SIGKILL)
    status = waited(pid, HANGS_AFTER)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise Failed("it failed before it could be killed")
    return os.WIFSIGNALED(status)


def waited(pid: int, seconds: float) -> int:
    """The status with which the process ended; it is killed when it takes longer."""
    end = time.monotonic() + seconds
    pause = 0.0005
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise Failed(f"it hung for {seconds:.0f} s")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.005)


@contextmanager
def shared() -> Iterator[mmap.mmap]:
    """Memory that a killed process leaves behind: a byte for the step, four for the calls, the last call's name."""
    told = mmap.mmap(-1, 256)
    try:
        yield told
    finally:
        told.close()


def told_in(told: mmap.mmap) -> tuple[int, int, str]:
    return told[0], struct.unpack("<I", told[1:5])[0], told[5:].rstrip(b"\0").decode("utf-8", "replace")


def watch_calls(told: mmap.mmap, watch: Callable[[int, bool], None], *, writes_alone: bool = False) -> None:
    """Call ``watch`` with the number of each call that changes files or makes them last, before and after it."""

    def watched(name: str, call: Callable[..., Any], counts: Callable[..., bool] = lambda *a, **k: True) -> Any:
        def calling(*args: Any, **kwargs: Any) -> Any:
            if not counts(*args, **kwargs):
                return call(*args, **kwargs)
            number = told_in(told)[1] + 1
            path = args[0] if name in ("open", "unlink", "fsync") else args[1]
            told[1:5] = struct.pack("<I", number)
            told[5:] = f"{name} {Path(f'{path}').name}".encode()[:251].ljust(251, b"\0")
            watch(number, True)
            done = call(*args, **kwargs)
            watch(number, False)
            return done

        return calling

    def writes(path: Any, mode: str = "r", *args: Any, **kwargs: Any) -> bool:
        return not isinstance(path, int) and any(letter in mode for letter in "wax+")

    def makes(path: Any, flags: int, *args: Any, **kwargs: Any) -> bool:
        return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))

    io.open = builtins.open = watched("open", io.open, writes)  # type: ignore[assignment]
    if writes_alone:
        return
    os.replace = watched("rename to", os.replace)
    os.rename = watched("rename to", os.rename)
    os.unlink = watched("unlink", os.unlink)
    os.fsync = watched("fsync", os.fsync)
    os.open = watched("open", os.open, makes)
    pl.DataFrame.write_parquet = watched("write rows of", pl.DataFrame.write_parquet)  # type: ignore[method-assign]


def dying_at(told: mmap.mmap, call: int, is_before: bool, *, writes_alone: bool = False) -> None:
    """Kill this process before or after the call with that number; see `watch_calls`."""

    def die(number: int, before: bool) -> None:
        if number == call and before == is_before:
            os.kill(os.getpid(), signal.SIGKILL)

    watch_calls(told, die, writes_alone=writes_alone)
