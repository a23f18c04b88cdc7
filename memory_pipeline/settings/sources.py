"""Where settings come from, by the names that they have there: variables, settings.toml, pi's memory.json.

A setting is named by its key in settings.toml, such as `observer.model`; a group of settings is a table there.
"""

from __future__ import annotations

import difflib
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
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, TomlConfigSettingsSource

from memory_pipeline.settings import memory_json
from memory_pipeline.settings.memory_json import WrongFileError

FILE_NAME = "settings.toml"
PREFIXES = ("MEMORY_", "OBSERVER_", "REFLECTOR_")
"""A variable that begins so and is none of ours is most likely misspelt."""
FOREIGN = ("MEMORY_PIPELINE_INSIDE", "MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE", "MEMORY_AVAILABLE")
"""What no user writes: set by us for the commands of models, by systemd for services, and by Heroku."""
FRONT = "front"
"""Marks a field that belongs on the front page: what people do change."""
REMOVED = {"proposal_warning_days": "it follows from proposal_expiry_days, of which it is five sevenths"}
"""What was a setting once, with what takes its place."""


ELSEWHERE = {
    **{"chunk_size": "chunk_tokens", "maxtranscripttokens": "chunk_tokens"},
    **{"working_tier_max_tokens": "pack.working_tokens", "session_tier_max_tokens": "pack.session_tokens"},
    **{"cross_session_tier_max_tokens": "pack.cross_session_tokens", "globalcontexttokenbudget": "pack.tokens"},
    **{"observationtokenthreshold": "reflect_early_tokens", "reflectionbias": "pack.reflection_bias"},
    **{"observationtokens": "reflect_early_tokens", "maxobservationlogtokens": "observer.max_output_tokens"},
    **{
        "previousobservertokens": "prior_tokens",
        "messagetokenthreshold": "idle_minutes",
        "messagetokens": "idle_minutes",
    },
    **{
        "observer.provider": "observer.model",
        "reflector.provider": "reflector.model",
        "compression.model": "observer.model",
    },
}
"""What other programs for observational memory call a setting, in lower case, whole or without its table."""


@dataclass(frozen=True)
class Variable:
    """The environment variable of a field where it is not its key with MEMORY_ before it; of a group: the prefix."""

    name: str


@dataclass(frozen=True)
class Shown:
    """How a default that is only known when it is asked for stands in a table."""

    text: str


@dataclass(frozen=True)
class Setting:
    """One setting: its key in settings.toml, its variable, and the field that says the rest."""

    key: str
    variable: str
    field: FieldInfo

    @property
    def is_front(self) -> bool:
        return FRONT in self.field.metadata

    @property
    def is_secret(self) -> bool:
        return not self.field.repr

    @property
    def meaning(self) -> str:
        return self.field.description or ""

    @property
    def default(self) -> str:
        """As it stands in a table; empty where there is none."""
        if shown := [mark.text for mark in self.field.metadata if isinstance(mark, Shown)]:
            return shown[0]
        return written(None if self.field.default is PydanticUndefined else self.field.default)


def written(value: Any) -> str:
    """A value as a user writes it into a variable; empty for none."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(value).removesuffix(".0")
    if isinstance(value, tuple):
        return os.pathsep.join(map(str, value))
    return "" if value is None else str(value)


@cache
def settings_of(cls: type[BaseSettings]) -> dict[str, Setting]:
    """Every setting by its key, in the order of the fields."""
    found = {}
    for name, field in cls.model_fields.items():
        group = field.annotation
        if isinstance(group, type) and issubclass(group, BaseModel):
            prefix = _variable(field) or f"{name.upper()}_"
            for inner, leaf in group.model_fields.items():
                key = f"{name}.{inner}"
                found[key] = Setting(key, _variable(leaf) or f"{prefix}{inner.upper()}", leaf)
        else:
            found[name] = Setting(name, _variable(field) or f"MEMORY_{name.upper()}", field)
    return found


def _variable(field: FieldInfo) -> str | None:
    return next((mark.name for mark in field.metadata if isinstance(mark, Variable)), None)


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by key, such as `observer.model`, as the groups have them."""
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


class Variables(PydanticBaseSettingsSource):
    """The environment; an empty variable is an unset one, and upper and lower case are the same."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Of no use here: the names are those of `settings_of`."""
        raise NotImplementedError

    def __call__(self) -> dict[str, Any]:
        given = _environment()
        return nested({s.key: v for s in settings_of(self.settings_cls).values() if (v := given.get(s.variable))})


def _environment() -> dict[str, str]:
    return {name.upper(): value for name, value in os.environ.items()} | dict(os.environ)


class SettingsFile(TomlConfigSettingsSource):
    """A workspace's settings.toml. Raises `WrongFileError` where it cannot be read or has a name that nothing reads."""

    def __init__(self, cls: type[BaseSettings], workspace: Path) -> None:
        path = workspace / FILE_NAME
        try:
            super().__init__(cls, path)
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise WrongFileError(f"{path} cannot be read: {reason}. Fix it or remove it.") from None
        if self.toml_data:
            refuse_unknown(cls, path, path.read_text("utf-8"), self.toml_data)


def refuse_unknown(cls: type[BaseSettings], path: Path, text: str, data: Mapping[str, Any]) -> None:
    """Raises `WrongFileError` for a name in the file that nothing reads, and for what a file may not say."""
    known = settings_of(cls)
    for key, value in flat(data).items():
        place = f"{path}:{line_of(text, key)}"
        if key == "workspace":
            raise WrongFileError(f"{place}: the file lies in the workspace and cannot name it; set MEMORY_WORKSPACE.")
        if key not in known:
            raise WrongFileError(f"{place}: {no_such(key, known)} Correct the name or take it out.")
        if key == "session_dirs" and (relative := [p for p in _paths(value) if not p.startswith(("~", os.sep))]):
            raise WrongFileError(
                f"{place}: expected absolute paths or ones that begin with ~, but {relative[0]!r} is neither."
            )


def _paths(value: Any) -> list[str]:
    parts = value.split(os.pathsep) if isinstance(value, str) else value if isinstance(value, list) else []
    return [str(part) for part in parts if str(part).strip()]


Given = Mapping[str, tuple[Any, str]]
"""Values by key, each with where it is set: the name of the variable, or the file, with its line where it has one."""


def given(cls: type[BaseSettings], workspace: Path) -> Given:
    """What is set anywhere, without the defaults."""
    path, known = workspace / FILE_NAME, settings_of(cls)
    text = path.read_text("utf-8") if path.is_file() else ""
    pi = {key: (value, str(file)) for key, (value, file) in memory_json.found().items()}
    variables = {key: (value, known[key].variable) for key, value in flat(Variables(cls)()).items()}
    return pi | dict(in_file(path, text, SettingsFile(cls, workspace).toml_data)) | variables


def in_file(path: Path, text: str, data: Mapping[str, Any]) -> Given:
    """What the text of a settings.toml sets."""
    return {key: (value, f"{path}:{line_of(text, key)}") for key, value in flat(data).items()}


def line_of(text: str, key: str) -> int:
    """The line of a TOML text that sets the key, else that of its table, counted from 1; 1 where neither is found."""
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
    """A sentence that nothing reads this name, with the nearest one that is read."""
    if replaced := REMOVED.get(name.lower().removeprefix("memory_")):
        return f"{name} is no setting any more: {replaced}."
    lower = name.lower()
    same = ELSEWHERE.get(lower) or ELSEWHERE.get(lower.rpartition(".")[2])
    near = [same] if same else difflib.get_close_matches(name, list(known), n=1)
    return f"{name} is no setting" + (f"; the nearest is {near[0]}." if near else ".")


def unknown_variables(cls: type[BaseSettings]) -> list[str]:
    """A sentence for each variable of the environment that looks like a setting and is none."""
    known = {setting.variable for setting in settings_of(cls).values()}
    strange = [n for n in os.environ if n.upper().startswith(PREFIXES) and n.upper() not in {*known, *FOREIGN}]
    return [
        f"{no_such(name, known)} Correct the variable or unset it; where it is another program's, "
        f"`env -u {name} memory …` leaves it out."
        for name in sorted(strange)
    ]


def sentences(cls: type[BaseSettings], error: ValidationError, places: Given) -> str:
    """One for each wrong value; defaults that could not be made because of them say nothing."""
    return " ".join(
        _sentence(cls, dict(e), places) for e in error.errors() if e["type"] != "default_factory_not_called"
    )


def _sentence(cls: type[BaseSettings], error: dict[str, Any], places: Given) -> str:
    known = settings_of(cls)
    path = [str(part) for part in error["loc"]]
    key = next((k for k in (".".join(path[:2]), *path[:1]) if k in known), ".".join(path) or "settings")
    reason = str(error["msg"]).removeprefix("Value error, ").removeprefix("Input ").partition(" for <class")[0]
    is_file = key in places and places[key][1] != known[key].variable
    way_out = "correct it or take it out" if is_file else "correct the variable or unset it"
    return f"{assignment(cls, key, error.get('input'), places)}: {reason}; {way_out} for the default."


def assignment(cls: type[BaseSettings], key: str, value: Any, places: Given) -> str:
    """The value as it is set, with where: `MEMORY_X='y'`, or `…/settings.toml:3: x='y'`."""
    known = settings_of(cls).get(key)
    text = "'…'" if known and known.is_secret else repr(str(value))
    if known is None or key not in places or places[key][1] == known.variable:
        return f"{known.variable if known else key}={text}"
    return f"{places[key][1]}: {key}={text}"
