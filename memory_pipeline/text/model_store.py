"""Embedding models on this machine, in the shared cache of the Hugging Face hub, and their download.

No other module of the pipeline downloads anything.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TypeVar

from memory_pipeline.errors import MemoryPipelineError

T = TypeVar("T")

WANTED = ("*.json", "*.txt", "*.model", "*.safetensors")
"""Weights as safetensors, which cannot run code, with their configuration and vocabulary."""
UNWANTED = ("onnx/*", "openvino/*")


class NotFetchedError(MemoryPipelineError):
    """The download failed; the message says why and what to do."""


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
    info = _ask_hub(full, lambda: HfApi().model_info(full, files_metadata=True))
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
    licence = info.card_data.get("license") if info.card_data else None
    return Offer(full, licence and str(licence), sum(names.values()))


def fetch(offer: Offer, *, with_progress: bool) -> Path:
    """Download the model into the cache and return its folder. A repeated call continues an interrupted download.

    Raises `NotFetchedError`.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it would log every attempt
    if not with_progress:
        disable_progress_bars()
    return Path(
        _ask_hub(
            offer.name,
            lambda: snapshot_download(offer.name, allow_patterns=list(WANTED), ignore_patterns=list(UNWANTED)),
        )
    )


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


def _ask_hub(name: str, ask: Callable[[], T]) -> T:
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
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise NotFetchedError(
            f"{hub} has no public model {name}; check the name, which has the form OWNER/NAME."
        ) from error
    except Exception as error:  # network, server and disk errors of three libraries without a common base class
        why = next((line.strip() for line in f"{error}".splitlines() if line.strip()), "no reason given")
        raise NotFetchedError(
            f"{name} cannot be downloaded from {hub} ({type(error).__name__}: {why.rstrip('.')}); check the network "
            f"and the disk, and try again."
        ) from error


def _is_wanted(file: str) -> bool:
    return any(fnmatch(file, p) for p in WANTED) and not any(fnmatch(file, p) for p in UNWANTED)
