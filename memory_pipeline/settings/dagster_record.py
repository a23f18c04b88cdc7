"""The location of Dagster's run storage, read from the workspace's dagster.yaml: SQLite files or Postgres.

The file and the variables that it names are read without importing Dagster, which takes seconds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memory_pipeline.errors import CannotGoOnError, TryAgainLaterError, causes
from memory_pipeline.settings.fields import Settings

_OUTAGES = ("psycopg2.OperationalError", "psycopg2.InterfaceError")
_KEYS = ("postgres_db", "postgres_url")
_REASON = re.compile(r".*\b(?:FATAL|failed|error): *(.*)")
"""The prefix of the driver before the server's message."""
_MAX_REASON = 160


class RecordUnavailableError(TryAgainLaterError):
    """The Postgres server of Dagster's storage is unreachable or refuses; the message says what to do."""


class RecordMisconfiguredError(CannotGoOnError):
    """The Postgres entry of dagster.yaml is invalid; the message says which part."""


@dataclass(frozen=True)
class PostgresRecord:
    """The run storage in Postgres."""

    url: str = field(repr=False)
    """The URL for SQLAlchemy, with the password."""
    shown: str
    """Host, port and database."""

    def unavailable(self, error: BaseException) -> RecordUnavailableError:
        """The error for a failure of the connection."""
        return RecordUnavailableError(
            f"Dagster's record of runs in Postgres at {self.shown} cannot be reached ({_reason(error)}). Start the "
            "server, or check the DAGSTER_POSTGRES_ variables, and run it again; stored data is intact."
        )


def names_postgres(settings: Settings) -> bool:
    """Whether dagster.yaml names Postgres, even if incorrectly."""
    return _names_postgres(_text(settings))


def names_celery(settings: Settings) -> bool:
    """Whether dagster.yaml names Celery workers for runs, even if incorrectly."""
    return "dagster_celery" in _text(settings)


def postgres_record(settings: Settings) -> PostgresRecord | None:
    """The storage in Postgres; None if Postgres is not used. Raises `RecordMisconfiguredError`."""
    text = _text(settings)
    if not _names_postgres(text):
        return None
    import yaml  # type: ignore[import-untyped]
    from sqlalchemy.engine import URL, make_url
    from sqlalchemy.exc import ArgumentError

    file = settings.dagster_home / "dagster.yaml"
    try:
        found = next(_configured(yaml.safe_load(text)), None)
    except yaml.YAMLError:
        return None  # reported by Dagster
    if found is None:
        return None
    values = {name: _value(name, value, f"{file}") for name, value in found.items() if name != "params"}
    try:
        if "postgres_url" in values:
            url = make_url(f"{values['postgres_url']}")
        else:
            url = URL.create(
                f"{values.get('scheme') or 'postgresql'}",
                username=values.get("username"),
                password=values.get("password"),
                host=values.get("hostname"),
                port=int(values.get("port") or 5432),
                database=values.get("db_name"),
                query={name: f"{value}" for name, value in (found.get("params") or {}).items()},
            )
    except (ArgumentError, ValueError, AttributeError):
        raise RecordMisconfiguredError(
            f"{file}: its Postgres settings are not an address. Give host, port (a number), user, password and "
            f"database."
        ) from None
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg2")
    shown = f"{url.host}:{url.port or 5432}/{url.database}"
    return PostgresRecord(url.render_as_string(hide_password=False), shown)


def is_outage(error: BaseException | None) -> bool:
    """Whether Postgres was unreachable, also if that caused another error."""
    names = {f"{kind.__module__}.{kind.__name__}" for one in causes(error) for kind in type(one).__mro__}
    return any(name in _OUTAGES or name.endswith(".DagsterPostgresException") for name in names)


def _reason(error: BaseException) -> str:
    """The server's message in one line."""
    *_, error = causes(error)
    lines = [line.strip() for line in f"{error}".splitlines() if line.strip()]
    found = next((m[1] for line in lines if (m := _REASON.match(line)) and m[1]), lines[0] if lines else "")
    return found[:_MAX_REASON].rstrip(".") or type(error).__name__


def _text(settings: Settings) -> str:
    try:
        text = (settings.dagster_home / "dagster.yaml").read_text("utf-8")
    except (OSError, ValueError):
        return ""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))


def _names_postgres(text: str) -> bool:
    return any(key in text for key in _KEYS)


def _configured(value: Any) -> Iterator[Mapping[str, Any]]:
    """The mappings that configure Postgres, in all places that Dagster accepts."""
    if not isinstance(value, Mapping):
        return
    for name, inner in value.items():
        if name == "postgres_url":
            yield {name: inner}
        elif name == "postgres_db" and isinstance(inner, Mapping):
            yield inner
        else:
            yield from _configured(inner)


def _value(name: str, value: Any, file: str) -> Any:
    """The value, or that of the environment variable that it names."""
    if not isinstance(value, Mapping) or "env" not in value:
        return value
    if not (found := os.environ.get(f"{value['env']}")):
        raise RecordMisconfiguredError(
            f"{file} takes the {name} of Postgres from {value['env']}, which is not set. Set it, or restore the "
            f"previous dagster.yaml, which keeps the record in files."
        )
    return found
