"""Optional packages by the extra in pyproject.toml that installs them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from memory_pipeline.settings.dagster_record import names_celery, names_postgres
from memory_pipeline.settings.fields import BUNDLED_MODEL, Settings

EXTRAS = {
    "encoders": ("sentence_transformers", "torch"),
    "models": ("pydantic_ai", "openai", "genai_prices"),
    "server": ("qdrant_client",),
    "mcp": ("mcp",),
    "postgres": ("dagster_postgres", "psycopg2"),
    "object-storage": ("obstore",),
    "celery": ("dagster_celery", "redis"),
}
"""The modules that each extra needs. They are imported inside functions, or by modules that functions import."""


def is_installed(extra: str) -> bool:
    """Whether the extra's modules are installed, as far as known without importing them."""
    return all(find_spec(module) is not None for module in EXTRAS[extra])


def missing_extras(settings: Settings) -> list[str]:
    """A sentence for each extra that a setting needs and that is not installed."""
    return [
        f"{cause}, whose packages are not installed: `pip install 'memory-pipeline[{extra}]'`."
        for extra, cause in _needed(settings)
        if not is_installed(extra)
    ]


def _needed(settings: Settings) -> Iterator[tuple[str, str]]:
    for role, asked in (("OBSERVER", settings.observer), ("REFLECTOR", settings.reflector)):
        for name, model in ((f"{role}_MODEL", asked.model), (f"{role}_FALLBACK_MODEL", asked.fallback_model)):
            if model and " " not in model:  # else a command with its arguments
                yield "models", f"{name} names the model of a provider"
    if settings.embedding_model != BUNDLED_MODEL:
        yield "encoders", f"EMBEDDING_MODEL={settings.embedding_model} is a model of sentence-transformers"
    if settings.qdrant.url:
        yield "server", "QDRANT_URL names a Qdrant server"
    if names_postgres(settings):
        yield "postgres", f"{settings.dagster_home / 'dagster.yaml'} names Postgres"
    if names_celery(settings):
        yield "celery", f"{settings.dagster_home / 'dagster.yaml'} names Celery"
    if settings.lake and not settings.lake.startswith("file://"):
        yield "object-storage", "MEMORY_LAKE names object storage"
