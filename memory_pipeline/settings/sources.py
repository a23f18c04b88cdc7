"""Sources of settings: environment variables, settings.toml and pi's memory.json.

A setting is identified by its key in settings.toml, such as `observer.model`; a group of settings is a table there. A
renamed setting is read under its former key, a removed one is ignored; both for one release, with a warning.
"""

from __future__ import annotations

import difflib
import logging
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from memory_pipeline.settings import memory_json
from memory_pipeline.settings.memory_json import WrongFileError

FILE_NAME = "settings.toml"
PREFIXES = ("MEMORY_", "OBSERVER_", "REFLECTOR_")
"""Prefixes of our variables: an unknown variable with such a prefix is most likely misspelt."""
FOREIGN = ("MEMORY_PIPELINE_INSIDE", "MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE", "MEMORY_AVAILABLE")
"""Variables with our prefixes that are not settings: those that the product sets for commands of models, and those of
systemd and Heroku."""
FRONT = "front"
"""Marks a field for the front page: settings that people change."""
ADVANCED = "advanced"
"""Marks a field that belongs to the table `advanced` of settings.toml, with its path as one word."""
HIDDEN = "hidden"
"""Marks a field that no list shows, for tests and for the product's own processes."""
MOVED = {
    "brief.tokens": "advanced.brief_tokens",
    "keep_words_days": "retention.messages",
    "keep_words_last": "retention.keep_last",
    "keep_days.message_embeddings": "retention.message_embeddings",
    "keep_days.embeddings": "retention.embeddings",
    "keep_days.summary_embeddings": "retention.summary_embeddings",
    "keep_days.friction_clusters": "retention.friction_clusters",
}
"""Keys of settings.toml with their new ones. Those of `advanced` follow from their paths: see `by_old_key`."""
GONE = {
    "context_file_tokens": "the reflector is shown 4,000 tokens of MEMORY.md and of each identity file",
    "mcp_tokens": "an answer always has at most 2,000 tokens",
    "observer_fallback_base_url": "the second model is asked at its provider's address, such as OPENAI_BASE_URL",
    "observer_fallback_price": "the price of the second model is that of `genai-prices`",
    "reflector_fallback_base_url": "the second model is asked at its provider's address, such as OPENAI_BASE_URL",
    "reflector_fallback_price": "the price of the second model is that of `genai-prices`",
    "keep_runs_days": "Dagster's record always keeps 90 days",
    "max_recall_loss": "a distillation may always lose one high in ten",
    "observer_images": "models that are known to accept images receive them",
    "observation_budget": "observations have at most a tenth of the tokens of their conversation",
    "owner": "a workspace is the memory of one person",
    "pack_cross_session_tokens": "beside a session, other sessions have 5,000 tokens",
    "pack_half_life_days": "a line ranks half as high after seven days without use",
    "pack_reflection_bias": "a condensed line always ranks 1.3 times as high",
    "pack_tokens": "a context pack has at most 15,000 tokens of other sessions",
    "pack_session_tokens": "the condensed messages of a session have at most 10,000 tokens",
    "pack_working_tokens": "the newest 30,000 tokens of a session stay as they are",
    "prior_tokens": "a request has at most 4,000 tokens of earlier observations",
    "projects_in_memory": "the project of a line is always shown after it",
    "proposal_warning_days": "it follows from proposal_expiry_days, of which it is five sevenths",
    "qdrant_quantization": "vectors are not quantized",
}
"""Removed settings, by their variables in lower case without MEMORY_, with what applies instead."""


@dataclass(frozen=True)
class Variable:
    """The environment variable of a field, if it is not MEMORY_ and its key; for a group, the prefix."""

    name: str


@dataclass(frozen=True)
class Shown:
    """The text that describes a default which depends on the workspace."""

    text: str


@dataclass(frozen=True)
class Setting:
    """A setting: its key in settings.toml, its variable, its path below `Settings`, and its field."""

    key: str
    variable: str
    path: str
    field: FieldInfo

    @property
    def is_front(self) -> bool:
        return FRONT in self.field.metadata

    @property
    def is_hidden(self) -> bool:
        return HIDDEN in self.field.metadata

    @property
    def is_secret(self) -> bool:
        return not self.field.repr

    @property
    def meaning(self) -> str:
        return self.field.description or ""

    @property
    def default(self) -> str:
        """The default as a table shows it; empty if there is none."""
        if shown := [mark.text for mark in self.field.metadata if isinstance(mark, Shown)]:
            return shown[0]
        return written(None if self.field.default is PydanticUndefined else self.field.default)


def written(value: Any) -> str:
    """A value in the form for an environment variable; empty for None."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(value).removesuffix(".0")
    if isinstance(value, tuple):
        return os.pathsep.join(map(str, value))
    return "" if value is None else str(value)


@cache
def settings_of(cls: type[BaseModel]) -> dict[str, Setting]:
    """Every setting by its path, such as `observer.model`, in the order of the fields."""
    found = {}
    for name, field in cls.model_fields.items():
        group = field.annotation
        if isinstance(group, type) and issubclass(group, BaseModel):
            prefix = _variable(field) or f"{name.upper()}_"
            for inner, leaf in group.model_fields.items():
                path = f"{name}.{inner}"
                found[path] = Setting(_key(path, leaf), _variable(leaf) or f"{prefix}{inner.upper()}", path, leaf)
        else:
            found[name] = Setting(_key(name, field), _variable(field) or f"MEMORY_{name.upper()}", name, field)
    return found


def _key(path: str, field: FieldInfo) -> str:
    return f"{ADVANCED}.{path.replace('.', '_')}" if ADVANCED in field.metadata else path


@cache
def by_key(cls: type[BaseModel]) -> dict[str, Setting]:
    """Every setting by its key in settings.toml."""
    return {setting.key: setting for setting in settings_of(cls).values()}


@cache
def by_old_key(cls: type[BaseModel]) -> dict[str, Setting]:
    """The settings with another key in the last release, by that key."""
    known = by_key(cls)
    moved = {setting.path: setting for key, setting in known.items() if setting.path != key}
    return moved | {old: known[key] for old, key in MOVED.items()}


def _variable(field: FieldInfo) -> str | None:
    return next((mark.name for mark in field.metadata if isinstance(mark, Variable)), None)


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by path, such as `observer.model`, nested by group."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        group, _, name = key.rpartition(".")
        (found.setdefault(group, {}) if group else found)[name] = value
    return found


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `nested`."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= {f"{name}.{inner}": v for inner, v in value.items()} if isinstance(value, dict) else {name: value}
    return found


def from_environment(cls: type[BaseModel]) -> dict[str, Any]:
    """The settings in the environment, nested by group; an empty variable counts as unset, and case is ignored."""
    given = {name.upper(): value for name, value in os.environ.items()} | dict(os.environ)
    return nested({s.path: value for s in settings_of(cls).values() if (value := given.get(s.variable))})


Given = Mapping[str, tuple[Any, str]]
"""Values by path, each with its source: the name of the variable, or the file, with its line if known."""


def from_file(cls: type[BaseModel], workspace: Path) -> Given:
    """The settings of a workspace's settings.toml. Raises `WrongFileError` if it cannot be read or has an unknown
    name."""
    path = workspace / FILE_NAME
    try:
        text = path.read_text("utf-8") if path.is_file() else ""
        return in_file(cls, path, text, tomllib.loads(text))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise WrongFileError(f"{path} cannot be read: {reason}. Fix it or remove it.") from None


def in_file(cls: type[BaseModel], path: Path, text: str, data: Mapping[str, Any]) -> Given:
    """The settings in the text of a settings.toml, including old names; a new name takes precedence.

    Raises `WrongFileError` for an unknown name and for a setting that is not allowed in the file.
    """
    known, old, found = by_key(cls), by_old_key(cls), dict[str, tuple[Any, str]]()
    for key, value in sorted(flat(data).items(), key=lambda item: item[0] in known):
        place = f"{path}:{line_number(text, key)}"
        if key == "workspace":
            raise WrongFileError(f"{place}: the file is in the workspace and cannot name it; set MEMORY_WORKSPACE.")
        if reason := reason_gone(key):
            warn(f"{place}: {key} is no longer a setting and is ignored: {reason}. Remove the line.")
            continue
        if key in old:
            warn(f"{place}: {key} is now {old[key].key}; the next release no longer reads the old name.")
        elif key not in known:
            raise WrongFileError(f"{place}: {no_such(key, known)} Correct the name or remove it.")
        if key == "session_dirs" and (relative := [p for p in _paths(value) if not p.startswith(("~", os.sep))]):
            raise WrongFileError(
                f"{place}: expected absolute paths or ones that begin with ~, but {relative[0]!r} is neither."
            )
        found[(old.get(key) or known[key]).path] = value, place
    return found


def nested_values(places: Given) -> dict[str, Any]:
    """The values nested by group."""
    return nested({path: value for path, (value, _) in places.items()})


def _paths(value: Any) -> list[str]:
    parts = value.split(os.pathsep) if isinstance(value, str) else value if isinstance(value, list) else []
    return [str(part) for part in parts if str(part).strip()]


def given(cls: type[BaseModel], workspace: Path) -> Given:
    """All settings that are set in any source, without defaults."""
    known = settings_of(cls)
    pi = {path: (value, str(file)) for path, (value, file) in memory_json.found().items()}
    variables = {path: (value, known[path].variable) for path, value in flat(from_environment(cls)).items()}
    return pi | dict(from_file(cls, workspace)) | variables


def line_number(text: str, key: str) -> int:
    """The line of a TOML text that sets the key, else that of its table, counted from 1; 1 if neither is found."""
    table, near = "", 1
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line):
            table = header[1].replace('"', "").replace("'", "")
            near = number if table == key.rpartition(".")[0] or table == key else near
        elif name := re.match(r"\s*([\w.\"'-]+(?:\s*\.\s*[\w\"'-]+)*)\s*=", line):
            plain = re.sub(r"[\s\"']", "", name[1])
            found = f"{table}.{plain}" if table else plain
            if found == key:
                return number
            near = number if key.startswith(f"{found}.") else near  # an inline table
    return near


def no_such(name: str, known: Iterable[str]) -> str:
    """A sentence that this name is unknown, with the nearest known one."""
    if reason := reason_gone(name):
        return f"{name} is no longer a setting: {reason}."
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"{name} is not a setting" + (f"; the nearest is {near[0]}." if near else ".")


def unknown_variables(cls: type[BaseModel]) -> list[str]:
    """A sentence for each variable of the environment that looks like a setting and is unknown."""
    known = {setting.variable for setting in settings_of(cls).values()}
    gone = [name for name in os.environ if name.upper().startswith((*PREFIXES, "QDRANT_")) and reason_gone(name)]
    for name in gone:
        warn(f"{name} is no longer a setting and is ignored: {reason_gone(name)}. Unset the variable.")
    strange = [n for n in os.environ if n.upper().startswith(PREFIXES) and n.upper() not in {*known, *FOREIGN, *gone}]
    return [
        f"{no_such(name, known)} Correct the variable or unset it; where it is another program's, "
        f"`env -u {name} memory …` leaves it out."
        for name in sorted(strange)
    ]


def sentences(cls: type[BaseModel], error: ValidationError, places: Given) -> str:
    """A sentence for each wrong value; defaults that depend on a wrong value are left out."""
    return " ".join(
        _sentence(cls, dict(e), places) for e in error.errors() if e["type"] != "default_factory_not_called"
    )


def _sentence(cls: type[BaseModel], error: dict[str, Any], places: Given) -> str:
    known = settings_of(cls)
    path = [str(part) for part in error["loc"]]
    key = next((k for k in (".".join(path[:2]), *path[:1]) if k in known), ".".join(path) or "settings")
    reason = str(error["msg"]).removeprefix("Value error, ").removeprefix("Input ").partition(" for <class")[0]
    is_file = key in places and places[key][1] != known[key].variable
    way_out = "correct it or remove it" if is_file else "correct the variable or unset it"
    return f"{assignment(cls, key, error.get('input'), places)}: {reason}; {way_out} for the default."


def assignment(cls: type[BaseModel], key: str, value: Any, places: Given) -> str:
    """The assignment with its source: `MEMORY_X='y'`, or `…/settings.toml:3: x='y'`."""
    known = settings_of(cls).get(key)
    text = "'…'" if known and known.is_secret else repr(str(value))
    if known is None or key not in places or places[key][1] == known.variable:
        return f"{known.variable if known else key}={text}"
    return f"{places[key][1]}: {known.key}={text}"


def reason_gone(name: str) -> str | None:
    """The reason why a setting was removed, by a former key or variable; None for any other name."""
    return GONE.get(name.lower().removeprefix("memory_").removeprefix("advanced.").replace(".", "_"))


@cache
def warn(sentence: str) -> None:
    """Log the sentence once per process; without a handler, logging prints it on stderr."""
    logging.getLogger(__name__).warning(sentence)
