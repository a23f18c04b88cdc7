"""The lake in object storage: `s3://`, `gs://` or `az://`, through obstore (the extra `object-storage`).

Each file is one object, written by a single PUT, so it exists completely or not at all. Objects are cached in the
workspace with their ETag, so reading the tables of a year costs listings, with a request per thousand files, and the
new objects; the cache may be deleted at any time. Credentials come from the provider's environment variables; they are
neither stored nor shown.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, ClassVar

from memory_pipeline.errors import CannotGoOnError, TryAgainLaterError
from memory_pipeline.lake.storage import SUFFIX, Expected, File, ReplacedMeanwhileError, is_file_in_range

if TYPE_CHECKING:
    from obstore.store import ObjectStore

RETRY_SECONDS = 60
"""Seconds for which a throttled or failed request is retried: providers ask clients to wait for seconds while a bucket
scales up, but a run should report an outage within a minute."""
MAX_RETRIES = 12
_AT_ONCE = 8
"""Maximum objects fetched at once: for small ones nearly all the time is waiting."""
_ENDPOINTS = ("AWS_ENDPOINT_URL", "STORAGE_EMULATOR_HOST")
"""Variables that set another endpoint than the provider's; Google's clients use the second."""
_QUARANTINE = "broken"
_MIN_SIZE = 12
"""Minimum bytes of a Parquet file."""


class LakeUnavailableError(TryAgainLaterError):
    """The object storage is temporarily unavailable."""


class LakeRefusedError(CannotGoOnError):
    """The object storage rejects the request: no bucket, no permission, no credentials."""


class ObjectStorage:
    """Objects below a URL, cached in a folder (None: a new temporary one)."""

    is_far: ClassVar[bool] = True

    def __init__(self, url: str, kept: Path | None = None) -> None:
        self.place, self._kept = url.rstrip("/"), kept or Path(mkdtemp())

    @cached_property
    def backups(self) -> ObjectStorage:
        return ObjectStorage(f"{self.place}/backups", self._kept / "backups")

    def place_of(self, key: str) -> str:
        return f"{self.place}/{key}"

    def is_begun(self, table: str = "") -> bool:
        return next(self._listed(table), None) is not None

    def changed_at(self, table: str) -> int:
        """The second of the last change, with a hash of the listing in place of its fraction."""
        found = list(self._list_objects(table))
        last = max((int(meta["last_modified"].timestamp()) for meta in found), default=0)
        state = repr([(meta["path"], meta["e_tag"]) for meta in found]).encode()
        return last * 10**9 + int.from_bytes(hashlib.sha256(state).digest()[:4]) % 10**9 if found else 0

    def files(self, table: str, first: str = "", last: str = "", suffix: str = SUFFIX) -> list[File]:
        found = []
        for file in self._listed(table, f"{table}/{first}" if first else None):
            name = file.key.rpartition("/")[2]
            if last and name.partition(suffix)[0] > last:
                break
            if is_file_in_range(name, first, last, suffix):
                found.append(file)
        return found

    def state(self, key: str) -> File | None:
        import obstore

        try:
            with self._readable_errors():
                return _file(key, obstore.head(self._store, key))
        except FileNotFoundError:
            return None

    def broken(self, keys: Sequence[str]) -> list[str]:
        """The keys of objects that are missing or too short. Objects are never truncated; internal damage is found by
        reading."""
        if not keys:
            return []
        whole = {file.key for file in self.files(keys[0].partition("/")[0]) if file.size >= _MIN_SIZE}
        return [key for key in keys if key not in whole]

    def local(self, file: File) -> str:
        path = self._kept / file.key
        with suppress(OSError):
            status = path.stat()
            if (status.st_size, status.st_mtime_ns) == (file.size, self._mark(file)):
                return f"{path}"
        return f"{self._fetch(file)}"

    def read(self, file: File) -> bytes:
        return Path(self.local(file)).read_bytes()

    def local_each(self, files: Sequence[File]) -> list[str]:
        def path_of(file: File) -> str | None:
            with suppress(FileNotFoundError):
                return self.local(file)
            return None

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return [path for path in pool.map(path_of, files) if path]

    def write(self, key: str, data: bytes, expected: Expected = "any") -> File:
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        try:
            with self._readable_errors():
                mode = self._mode(key, expected)
                made = obstore.put(self._store, key, data, mode=mode, use_multipart=False)
        except (AlreadyExistsError, PreconditionError, FileNotFoundError) as error:  # the last one: deleted meanwhile
            now = self.state(key)  # a request that is repeated after a lost answer conflicts with its own write
            if now is None or self.read(now) != data:
                raise ReplacedMeanwhileError(f"{self.place_of(key)} was replaced by another worker.") from error
            return now
        file = File(key, len(data), _quoted(made["e_tag"]))
        with suppress(OSError):  # full disk: the object is fetched when it is read
            self._cache(file, data)
        return file

    def _mode(self, key: str, expected: Expected) -> Any:
        """The condition of a PUT for obstore. Google uses the generation of an object, which a listing lacks. Raises
        PreconditionError if another version exists, and FileNotFoundError if none does."""
        import obstore
        from obstore.exceptions import PreconditionError

        if expected == "any":
            return "overwrite"
        if expected is None:
            return "create"
        if not self.place.startswith("gs://"):
            return {"e_tag": expected}
        now = obstore.head(self._store, key)
        if _quoted(now["e_tag"]) != expected:
            raise PreconditionError(f"{key} is another one")
        return {"e_tag": now["e_tag"], "version": now["version"]}

    def set_aside(self, key: str, damaged: bytes | None = None) -> str | None:
        """See `Storage.set_aside`. Limit: an object that is written in the milliseconds between check and removal is
        removed too; its stage rebuilds it, or it is restored from its versions."""
        import obstore

        if (now := self.state(key)) is None:
            return None
        data = self.read(now)
        if damaged is not None and data != damaged:
            return None
        name = f"{_QUARANTINE}/{key}.broken-{hashlib.sha256(data).hexdigest()[:8]}"
        with self._readable_errors():
            obstore.put(self._store, name, data, use_multipart=False)
        self.remove([key])
        return self.place_of(name)

    def put_aside(self) -> list[str]:
        return [file.key for file in self._listed(_QUARANTINE)]

    def remove(self, keys: Sequence[str]) -> None:
        import obstore

        with self._readable_errors():
            for key in keys:
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, key)
        for key in keys:
            (self._kept / key).unlink(missing_ok=True)

    # --- the client ---

    @cached_property
    def _store(self) -> ObjectStore:
        """The client, after checking that the bucket exists, which a missing object does not show."""
        import obstore
        from obstore.store import from_url

        named = [os.environ.get(name, "") for name in _ENDPOINTS]  # an endpoint without TLS was chosen on purpose
        try:
            store: ObjectStore = from_url(
                self.place,
                client_options={"allow_http": True} if any(url.startswith("http://") for url in named) else {},
                retry_config={"max_retries": MAX_RETRIES, "retry_timeout": timedelta(seconds=RETRY_SECONDS)},
            )
        except Exception as error:
            raise LakeRefusedError(f"{self.place} cannot be used as MEMORY_LAKE: {_error_kind(error)}.") from None
        with self._readable_errors():
            next(iter(obstore.list(store, prefix=_QUARANTINE)), None)
        return store

    def _list_objects(self, table: str, offset: str | None = None) -> Iterator[Any]:
        import obstore

        with self._readable_errors():
            for page in obstore.list(self._store, prefix=table, offset=offset):
                yield from page

    def _listed(self, table: str, offset: str | None = None) -> Iterator[File]:
        for meta in self._list_objects(table, offset):
            yield _file(meta["path"], meta)

    @contextmanager
    def _readable_errors(self) -> Iterator[None]:
        """Convert an error of the client into a sentence, except for missing and replaced objects. Its message is not
        shown, as a request may contain a key."""
        from obstore import exceptions

        try:
            yield
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
            raise
        except (FileNotFoundError, exceptions.BaseError) as error:  # a refused listing has no error class of its own
            text, reason = f"{error}", _error_kind(error)
            if "NoSuchBucket" in text or "ContainerNotFound" in text:
                raise LakeRefusedError(
                    f"The bucket of {self.place} does not exist. Create it, or name another in MEMORY_LAKE, and run it "
                    "again."
                ) from None
            if isinstance(error, FileNotFoundError):
                raise
            raise self._sentence(text, reason) from None

    def _sentence(self, text: str, reason: str) -> LakeRefusedError | LakeUnavailableError:
        if re.match(r"40[13]\b|PermissionDenied|Unauthenticated", reason):
            return LakeRefusedError(
                f"{self.place} refused ({reason}): expected credentials that may list, read, write and delete there. "
                "Set the variables of its provider, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or request "
                "the permissions, and run it again."
            )
        if "169.254." in text or "metadata.google.internal" in text:
            return LakeRefusedError(
                f"There are no credentials for {self.place}: expected the variables of its provider, such as "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. Set them and run it again."
            )
        return LakeUnavailableError(
            f"{self.place} did not respond within {RETRY_SECONDS} seconds ({reason}). Check the network and the "
            "status of the storage, and run it again: completed work is kept, and the next run does the rest."
        )

    # --- what is kept in the workspace ---

    def _fetch(self, file: File) -> Path:
        import obstore

        with self._readable_errors():
            found = obstore.get(self._store, file.key)
            return self._cache(_file(file.key, found.meta), bytes(found.bytes()))

    def _cache(self, file: File, data: bytes) -> Path:
        path, mark = self._kept / file.key, self._mark(file)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(temporary, "wb", opener=_private) as stream:
            stream.write(data)
        os.utime(temporary, ns=(mark, mark))
        temporary.replace(path)
        return path

    def _mark(self, file: File) -> int:
        """The modification time of a cached object: a hash of its version, in whole microseconds until 2038. Where a
        file system rounds it, or a power cut left the file incomplete, the object is fetched again."""
        digest = hashlib.sha256(f"{self.place} {file.version}".encode()).digest()
        return int.from_bytes(digest[:8]) % (2**31 * 10**6) * 1000


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _file(key: str, meta: Any) -> File:
    tag = meta["e_tag"]
    return File(key, meta["size"], _quoted(tag) if tag else str(meta["version"] or meta["last_modified"]))


def _quoted(tag: str | None) -> str:
    """An ETag in the form of a header; Azure's listings omit the quotes."""
    return tag if tag and tag.endswith('"') else f'"{tag}"'


def _error_kind(error: Exception) -> str:
    """The status or kind of the error: short, and without any part of the request."""
    text = f"{error}"
    if found := re.search(r"status code: (\d{3} [A-Z][A-Za-z ]*)", text):
        return found[1].strip()
    if "error sending request" in text or "onnect" in text:
        return "no connection"
    return type(error).__name__
