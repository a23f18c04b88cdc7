"""A disk on which only what was flushed outlasts a power cut, as hard as POSIX allows it to be.

A process that writes records which bytes of which file it has flushed, and which names of which folder (`recorded`).
After its death the folder is put together anew (`cut`): for each folder, by chance, either the names that it had when
it was flushed last or those of now; for each file that was written since, either its flushed bytes, or those of now,
or, where nothing of it was ever flushed, nothing or zeros. What nobody flushed may so be there or not, in any mixture:
file systems promise no more, and the usual ones (ext4) lose less.

It sees what Python flushes, renames and removes. Of the folders `WITHOUT`, which libraries write by themselves, either
everything outlasts the cut or nothing since the process began. It does not see a file that is flushed in parts, tear
pages, or cut in the middle of a flush; a folder that is renamed counts as new under its new name.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memory_pipeline_tests.prepared import copied

WITHOUT = ("index",)


@dataclass
class _Record:
    """What is noted of a folder, below `notes`: copies of flushed files, and a line for each thing that happened.

    A file is known by a number of its own: a name may come to lie on another one, and the system gives the number of
    a removed one to the next.
    """

    root: Path
    notes: Path
    folders: bool
    log: int = -1
    """Descriptor of the lines."""
    numbers: dict[int, int] = field(default_factory=dict)
    count: itertools.count[int] = field(default_factory=itertools.count)

    def write(self, *what: Any) -> None:
        os.write(self.log, f"{json.dumps(what)}\n".encode())

    def begin(self) -> None:
        self.notes.mkdir()
        self.log = os.open(self.notes / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for path in _files(self.root):
            self.write("before", self.number(path.stat().st_ino), f"{path.relative_to(self.root)}")

    def number(self, inode: int) -> int:
        if inode not in self.numbers:
            self.numbers[inode] = next(self.count)
            self.write("number", inode, self.numbers[inode])
        return self.numbers[inode]

    def flushed(self, descriptor: int) -> None:
        path, status = Path(f"/proc/self/fd/{descriptor}").readlink(), os.fstat(descriptor)
        if not path.is_relative_to(self.root):
            return
        if stat.S_ISREG(status.st_mode):
            copy = next(self.count)
            shutil.copyfile(f"/proc/self/fd/{descriptor}", self.notes / f"{copy}")
            self.write("file", self.number(status.st_ino), copy)
        elif self.folders:
            names = {e.name: None if e.is_dir() else self.number(e.inode()) for e in os.scandir(path)}
            self.write("folder", f"{path.relative_to(self.root)}", names)

    def removed(self, path: str | Path) -> None:
        """Its inode may be another file's from now on."""
        try:
            status = Path(path).stat()
        except OSError:
            return
        if status.st_nlink == 1 and self.numbers.pop(status.st_ino, None) is not None:
            self.write("gone", status.st_ino)


def recorded(root: Path, notes: Path, *, folders: bool = True) -> None:
    """From now on write down what this process flushes below the root; without ``folders`` their flushes do not count.

    A copy of what is there now goes to ``notes``.
    """
    copied(root, notes.with_name(f"{notes.name}-before"))
    record = _Record(root, notes, folders)
    fsync, unlink, replace, rename = os.fsync, os.unlink, os.replace, os.rename
    record.begin()

    def flush(descriptor: Any) -> None:
        fsync(descriptor)
        record.flushed(descriptor if isinstance(descriptor, int) else descriptor.fileno())

    def remove(path: Any, **kwargs: Any) -> None:
        record.removed(path)
        unlink(path, **kwargs)

    def put(call: Any) -> Any:
        def putting(source: Any, target: Any, **kwargs: Any) -> None:
            record.removed(target)
            call(source, target, **kwargs)

        return putting

    os.fsync, os.unlink, os.replace, os.rename = flush, remove, put(replace), put(rename)  # type: ignore[assignment]


def cut(root: Path, notes: Path, chance: random.Random) -> None:
    """Make of the root what a power cut at this moment may leave of it."""
    before, live = notes.with_name(f"{notes.name}-before"), root.with_name(f"{root.name}-live")
    root.rename(live)
    found = _Read.of(notes)
    _rebuild(Path(), root, live, found, chance)
    for name in WITHOUT:
        kept = chance.choice((live, before)) / name
        if kept.exists():
            copied(kept, root / name)
    for folder in (live, before, notes):
        shutil.rmtree(folder)


@dataclass
class _Read:
    """What was written down, as it stood at the end."""

    bytes_of: dict[int, Path]
    """The flushed bytes of each file by its number."""
    names_of: dict[str, dict[str, int | None]]
    """The flushed names of each folder; of a folder within, None."""
    numbers: dict[int, int]
    """Of what lies there now, by inode."""

    def number_of(self, path: Path) -> int:
        """Of one that no note is of, a number that nothing is known of."""
        return self.numbers.get(path.stat().st_ino, -1)

    @classmethod
    def of(cls, notes: Path) -> _Read:
        before = notes.with_name(f"{notes.name}-before")
        found = cls({}, {}, {})
        for path in (before, *before.rglob("*")):
            if path.is_dir():
                found.names_of[f"{path.relative_to(before)}"] = {p.name: None for p in path.iterdir() if p.is_dir()}
        for line in (notes / "log").read_text().splitlines():
            match json.loads(line):
                case "before", number, name:
                    found.bytes_of[number] = before / name
                    found.names_of[f"{Path(name).parent}"][Path(name).name] = number
                case "number", inode, number:
                    found.numbers[inode] = number
                case "gone", inode:
                    found.numbers.pop(inode)
                case "file", number, copy:
                    found.bytes_of[number] = notes / f"{copy}"
                case "folder", name, names:
                    found.names_of[name] = names
        return found


def _rebuild(at: Path, root: Path, live: Path, found: _Read, chance: random.Random) -> None:
    """The folder at this place, with what lies in it."""
    (root / at).mkdir()
    now = {path.name: path for path in sorted((live / at).iterdir())} if (live / at).is_dir() else {}
    numbers = {name: None if path.is_dir() else found.number_of(path) for name, path in now.items()}
    names = numbers if chance.random() < 0.5 else found.names_of.get(f"{at}", {})
    for name, number in sorted(names.items()):
        if at == Path() and name in WITHOUT:
            continue
        if number is None:
            _rebuild(at / name, root, live, found, chance)
        else:
            is_there = name in now and numbers[name] == number
            _put_back(root / at / name, now[name] if is_there else None, found.bytes_of.get(number), chance)


def _put_back(target: Path, live: Path | None, flushed: Path | None, chance: random.Random) -> None:
    """One of the states that the file may be in."""
    if live and (chance.random() < 0.5 or (flushed and flushed.read_bytes() == live.read_bytes())):
        shutil.copy2(live, target)
    elif flushed:
        shutil.copy2(flushed, target)
    else:
        target.write_bytes(bytes(live.stat().st_size if live and chance.random() < 0.5 else 0))


def _files(root: Path) -> Iterable[Path]:
    inside = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    return (path for path in inside if path.relative_to(root).parts[0] not in WITHOUT)
