"""Writing a user's files so that no crash and no second writer can lose a byte.

Text is UTF-8 with ``surrogateescape``: whatever bytes a user's file holds (a byte order mark, ``\\r\\n``, broken
UTF-8), ``encode(decode(data)) == data``.
"""

import contextlib
import errno
import itertools
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.locks import FileLock

BACKUPS_KEPT = 20
# An edit takes milliseconds; whoever holds the lock for longer hangs, and waiting for ever would hang us too.
LOCK_SECONDS = 60.0
# A temporary file lives for milliseconds; an hour is beyond doubt.
TEMPORARY_FILE_SECONDS = 3600.0
_STAMP = "%Y%m%dT%H%M%S.%fZ"
_TEMPORARY_FILE = re.compile(
    r"\.memory-[0-9a-f]{16}\.tmp"  # markdown, backups
    r"|\.(?:all|\d{4}-\d\d-\d\d)\.parquet(?:\.\d{8}T\d{6}\.\d{6}Z)?(?:\.\d+){1,2}\.tmp"  # tables, versions, objects
    r"|\.[0-9a-f]{64}\.[0-9a-f]{8}\.tmp"  # answers of models
    r"|\.(?:timezone|start_date|salt)\.\d+\.\d+\.tmp"  # marks of the workspace
)
_TEMPORARY_FOLDER = re.compile(r"\.examples-[a-z0-9_]{8}")
"""The bundled examples on their way into their workspace."""


class ChangedMeanwhileError(MemoryPipelineError):
    """Another program wrote the file between our reading and our writing; nothing was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} was changed by another program meanwhile; it was left unchanged")
        self.path = path


def decode(data: bytes) -> str:
    """The text of a file's bytes, with bytes that are not UTF-8 kept as lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """The inverse of `decode`."""
    return text.encode("utf-8", "surrogateescape")


def write_atomically(path: Path, data: bytes, *, expected: bytes | None, backups: Path | None) -> bool:
    """Replace the file's bytes by ``data``; True when it was written, False when it already held ``data``.

    The file is at every moment, also after a crash, entirely old or entirely new. ``expected`` are the bytes that
    ``data`` was made from (None: there was no file). The old bytes go to ``backups/<name>.<UTC stamp>`` first, of
    which the newest 20 are kept. A symbolic link stays and its target is written; permissions are kept; missing
    folders are made.

    Raises ChangedMeanwhileError when the file no longer holds ``expected``, PermissionError when its owner made it
    read-only. What a killed process leaves beside the file (``.memory-*.tmp``) is removed by a later write.
    """
    target = path.resolve()
    old = _bytes_or_none(target)
    if old == data:
        return False
    if old != expected:
        raise ChangedMeanwhileError(path)
    if old is not None:
        # a rename would get past the file's own permissions, so they are asked here
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        if backups is not None:
            _back_up(path.name, old, backups)

    def require_expected() -> None:
        # Limit: a writer that strikes in the microseconds between this look and the rename goes unnoticed.
        if _bytes_or_none(target) != expected:
            raise ChangedMeanwhileError(path)

    replace_file(target, data, like=None if old is None else target, check=require_expected)
    return True


def replace_file(
    path: Path,
    data: bytes,
    *,
    like: Path | None = None,
    mode: int = 0o666,
    check: Callable[[], object] = lambda: None,
) -> None:
    """Write a file that only the program writes, whatever it holds: at every moment, also after a crash, it is entirely
    old or entirely new.

    Its permissions are those of ``like`` (None: by ``mode``). An error of ``check``, which is called right before the
    rename, leaves the file as it is.
    """
    make_folder(path.parent)
    temporary = _temporary_in(path.parent, data, like=like, mode=mode)
    try:
        check()
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def update_file(path: Path, edit: Callable[[bytes | None], bytes], *, backups: Path, attempts: int = 5) -> bool:
    """Read the file, ``edit`` its bytes (None: no file), write them back; True when the file changed.

    When a user saves the file in between, the edit is made again on what they saved. Our own processes take turns
    under a lock that lies in ``backups``. ``edit`` may be called several times and must depend on its argument alone.

    Raises ChangedMeanwhileError after ``attempts``, filelock.Timeout after a minute, and whatever ``edit`` raises.
    """

    def once() -> bool:
        current = _bytes_or_none(path)
        return write_atomically(path, edit(current), expected=current, backups=backups)

    make_folder(backups)
    with FileLock(backups / f"{path.name}.lock", timeout=LOCK_SECONDS):
        for _ in range(attempts - 1):
            with contextlib.suppress(ChangedMeanwhileError):
                return once()
        return once()


def keep_copy(path: Path, backups: Path) -> None:
    """Update the newest backup from the file, unless the file is blank."""
    try:
        data = path.read_bytes()
    except OSError:  # gone, or not ours to read
        return
    if not is_blank(data):
        _back_up(path.name, data, backups)


def copies_of(path: Path, backups: Path) -> list[Path]:
    """The backups of the file, the oldest first."""
    stamped = re.compile(re.escape(path.name) + r"\.\d{8}T\d{6}\.\d{6}Z")
    return sorted(found for found in backups.iterdir() if stamped.fullmatch(found.name)) if backups.is_dir() else []


def is_blank(data: bytes) -> bool:
    """Whether the bytes contain no text: no bytes, blanks, or the zeros of a power cut."""
    return not data.strip(b"\0 \t\r\n\xef\xbb\xbf")


def aside(path: Path) -> Path:
    """A free name for what is damaged: `<name>.broken-<n>`."""
    candidates = (path.with_name(f"{path.name}.broken-{n}") for n in itertools.count(1))
    return next(candidate for candidate in candidates if not candidate.exists())


def _bytes_or_none(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _back_up(name: str, data: bytes, backups: Path) -> None:
    earlier = copies_of(Path(name), backups)
    # A run that fails and is retried must not push twenty different versions out with twenty equal ones.
    if earlier and earlier[-1].read_bytes() == data:
        return
    stamp = datetime.now(UTC)
    if earlier:  # the newest is the last by name, also after a clock that ran ahead
        last = datetime.strptime(earlier[-1].name.removeprefix(f"{name}."), _STAMP).replace(tzinfo=UTC)
        stamp = max(stamp, last + timedelta(microseconds=1))
    replace_file(backups / f"{name}.{stamp:{_STAMP}}", data, mode=0o600)
    for superseded in earlier[: max(0, len(earlier) + 1 - BACKUPS_KEPT)]:
        superseded.unlink(missing_ok=True)


def _temporary_in(folder: Path, data: bytes, *, like: Path | None, mode: int) -> Path:
    """A new file in ``folder`` that holds ``data`` on disk, with the permissions of ``like`` (None: by ``mode``)."""
    for left in filter(_is_old, folder.glob(".memory-*.tmp")):  # by a killed process, also outside a workspace
        left.unlink(missing_ok=True)
    temporary = folder / f".memory-{secrets.token_hex(8)}.tmp"
    # not tempfile.mkstemp: it makes every file 0600, and the umask cannot be read without setting it for all threads
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode if like is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            if like is not None:
                _copy_owner_and_mode(like, temporary)
            os.fsync(stream.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _copy_owner_and_mode(source: Path, destination: Path) -> None:
    wanted, made = source.stat(), destination.stat()
    if (wanted.st_uid, wanted.st_gid) != (made.st_uid, made.st_gid):
        # only root may give a file away; for anybody else the file stays theirs, which is how it was before
        with contextlib.suppress(PermissionError):
            os.chown(destination, wanted.st_uid, wanted.st_gid)
    destination.chmod(wanted.st_mode & 0o7777)


def make_folder(folder: Path) -> None:
    """Make the folder and those above it, so that their names outlast a power cut."""
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in reversed(new):
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Let the names in the folder outlast a power cut."""
    if os.name == "nt":  # Windows cannot open a folder
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # some network file systems know no fsync of a folder; the file itself is complete by now
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def remove_temporary_files(workspace: Path, *, but_in: Path) -> list[Path]:
    """Take them away and return them. ``but_in`` is a folder that others keep, with many files and none of ours."""
    found = []
    for path in find_temporary_files(workspace, but_in=but_in):
        with contextlib.suppress(OSError):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            found.append(path)
    return found


def find_temporary_files(workspace: Path, *, but_in: Path) -> list[Path]:
    """Temporary files older than an hour, as newer ones may be in use; also those with a time in the future."""
    found = []
    for folder, folders, names in os.walk(workspace):
        found += [Path(folder, name) for name in names if _TEMPORARY_FILE.fullmatch(name)]
        found += [Path(folder, name) for name in folders if _TEMPORARY_FOLDER.fullmatch(name)]
        folders[:] = [n for n in folders if Path(folder, n) != but_in and not _TEMPORARY_FOLDER.fullmatch(n)]
    return list(filter(_is_old, found))


def _is_old(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return not path.is_symlink() and abs(time.time() - path.stat().st_mtime) > TEMPORARY_FILE_SECONDS
    return False
