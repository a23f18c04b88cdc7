"""Embedding models on this machine, in the shared cache of the Hugging Face hub, and their download.

No other module of the pipeline downloads anything.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from memory_pipeline.errors import MemoryPipelineError

if TYPE_CHECKING:
    from huggingface_hub.hf_api import ModelInfo

T = TypeVar("T")

WANTED = ("*.json", "*.txt", "*.model", "*.safetensors")
"""Weights as safetensors, which cannot run code, with their configuration and vocabulary."""
UNWANTED = ("onnx/*", "openvino/*")


class NotFetchedError(MemoryPipelineError):
    """The download failed and no files are left; the message says why and what to do."""


@dataclass(frozen=True)
class Offer:
    """A model on the hub."""

    name: str
    licence: str | None
    size: int
    """Size in bytes of the files that would be downloaded."""


@dataclass(frozen=True)
class Stored:
    """A complete model on this machine."""

    name: str
    size: int
    """Bytes."""
    folder: Path


def offer_of(name: str) -> Offer:
    """Ask the hub for the model without downloading it. A name without owner means one of sentence-transformers.

    Raises `NotFetchedError`.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # the client reads it when it is imported
    from huggingface_hub import HfApi

    full = name if "/" in name else f"sentence-transformers/{name}"
    info = _asked(full, lambda: HfApi().model_info(full, files_metadata=True))
    names = {sibling.rfilename: sibling.size or 0 for sibling in info.siblings or () if _is_wanted(sibling.rfilename)}
    if not any(file.endswith(".safetensors") for file in names):
        raise NotFetchedError(
            f"{full} has no weights as safetensors, and files of other kinds can run code; choose another model."
        )
    if "modules.json" not in names:
        raise NotFetchedError(
            f"{full} is not a model of sentence-transformers (it has no modules.json); choose one that computes "
            f"vectors."
        )
    return Offer(full, _licence_of(info), sum(names.values()))


def fetch(offer: Offer, *, with_progress: bool) -> Path:
    """Download the model into the cache and return its folder; existing files are not downloaded again.

    Raises `NotFetchedError`; then, and on interruption, incomplete files are removed.
    """
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it would log every attempt
    if not with_progress:
        disable_progress_bars()
    place = Path(constants.HF_HUB_CACHE) / f"models--{offer.name.replace('/', '--')}"
    before = set(place.rglob("*"))
    newest = {path: path.read_bytes() for path in (place / "refs").rglob("*") if path.is_file()}
    try:
        return Path(
            _asked(
                offer.name,
                lambda: snapshot_download(
                    offer.name,
                    allow_patterns=list(WANTED),
                    ignore_patterns=list(UNWANTED),
                ),
            )
        )
    except BaseException:
        _remove_new_files(place, before)
        for path, revision in newest.items():  # otherwise the name would refer to files that were removed
            path.write_bytes(revision)
        raise


def stored_models() -> list[Stored]:
    """The models of sentence-transformers in the cache, by name, without the bundled one."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    found: list[Stored] = []
    try:
        repositories = scan_cache_dir().repos
    except CacheNotFound:
        return found
    for repository in sorted(repositories, key=lambda r: r.repo_id):
        for revision in repository.revisions:
            folder = revision.snapshot_path
            is_whole = (folder / "modules.json").exists() and any(folder.rglob("*.safetensors"))
            if repository.repo_type == "model" and is_whole:
                found.append(Stored(repository.repo_id, revision.size_on_disk, folder))
                break
    return found


def _asked(name: str, ask: Callable[[], T]) -> T:
    """The hub's response. Raises `NotFetchedError` on any failure."""
    from huggingface_hub import constants, errors

    hub = constants.ENDPOINT
    if constants.is_offline_mode():
        raise NotFetchedError("HF_HUB_OFFLINE is set, so nothing can be downloaded; unset it for this command.")
    try:
        return ask()
    except errors.GatedRepoError as error:
        raise NotFetchedError(
            f"{hub} gives {name} only to those who accept its terms: do so at {hub}/{name}, then `hf auth login`."
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise NotFetchedError(f"{hub} has no model {name} that is public; check the name.") from error
    except errors.HFValidationError as error:
        raise NotFetchedError(
            f"{name!r} is not the name of a model; expected OWNER/NAME, as in intfloat/e5-base-v2."
        ) from error
    except Exception as error:  # network, server and disk errors of three libraries without a common base class
        why = next((line.strip() for line in f"{error}".splitlines() if line.strip()), "no reason given")
        raise NotFetchedError(
            f"{name} cannot be downloaded from {hub} ({type(error).__name__}: {why.rstrip('.')}), and nothing was "
            f"stored; check the network and the disk, and try again."
        ) from error


def _remove_new_files(place: Path, before: set[Path]) -> None:
    """Remove the files in the folder of a model that were not there before."""
    for path in sorted(set(place.rglob("*")) - before, reverse=True):  # the contents of a folder before the folder
        if path.is_dir() and not path.is_symlink():
            with suppress(OSError):  # another process has written there
                path.rmdir()
        else:
            path.unlink(missing_ok=True)
    if not before:
        with suppress(OSError):
            place.rmdir()
        shutil.rmtree(place.parent / ".locks" / place.name, ignore_errors=True)


def _is_wanted(file: str) -> bool:
    return any(fnmatch(file, p) for p in WANTED) and not any(fnmatch(file, p) for p in UNWANTED)


def _licence_of(info: ModelInfo) -> str | None:
    licence = info.card_data.get("license") if info.card_data else None
    return f"{licence}" if licence else None
