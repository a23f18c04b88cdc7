"""`memory settings`: shows the effective values and their sources, and edits the workspace's settings.toml."""

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

import typer

from memory_pipeline.cli.console import MISUSED, AsJson, err, fail, print_json, say, say_pair
from memory_pipeline.cli.workspace import settings_of_call
from memory_pipeline.markdown.safe_write import decode, encode, update_file
from memory_pipeline.settings import SettingError, Settings, check_file, named_workspace
from memory_pipeline.settings.marks import stored_first_day, stored_zone
from memory_pipeline.settings.sources import (
    ADVANCED,
    FILE_NAME,
    Setting,
    by_key,
    by_old_key,
    given,
    no_such,
    settings_of,
    unknown_variables,
    written,
)

HEADER = "# Settings of this workspace. Environment variables take precedence; `memory settings` shows both.\n\n"
AT_START = ("start_date", "timezone", "lookback_days", "todoist.enabled", "archive_after_days")
"""Paths of the settings on which Dagster's definitions depend; each run and sensor reads the others again."""
KEY = Annotated[str, typer.Argument(help="Key in settings.toml or variable: observer.model, OBSERVER_MODEL.")]
app = typer.Typer(invoke_without_command=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def settings(context: typer.Context, as_json: AsJson = False) -> None:
    """Show the settings with their sources, and change them.

    `set` and `unset` write settings.toml in the workspace, which every command reads.
    """
    if context.invoked_subcommand is not None:
        return
    rows = setting_rows(settings_of_call())
    if as_json:
        print_json(rows)
        return
    say_pair("file", named_workspace() / FILE_NAME)
    groups = {"most used": [row for row in rows if row["front"]]}
    for row in rows:
        if not row["front"]:
            groups.setdefault(row["key"].rpartition(".")[0] or "others", []).append(row)
    width = max(len(row["key"]) for row in rows) + 2
    for name, members in groups.items():
        say(f"\n{name}", "bold")
        for row in members:
            place = row["from"].removeprefix(f"{named_workspace()}/")
            say(f"  {row['key']:<{width}}{row['value'] or '-'}  ({place})")


@app.command("set", context_settings={"ignore_unknown_options": True})  # allows -1 as a value
def set_(key: KEY, value: Annotated[str, typer.Argument(help="The value, written as in the variable.")]) -> None:
    """Write a setting to settings.toml; comments and order are kept."""
    setting = _find_setting(key)
    if setting is None:
        listed = [s for s in settings_of(Settings).values() if not s.is_hidden]
        names = [*(s.key for s in listed), *(s.variable for s in listed)]
        raise fail(f"{no_such(key, names)} `memory settings` lists all.", MISUSED)
    if setting.key == "workspace":
        raise fail("The workspace is named by MEMORY_WORKSPACE; its own file cannot contain its location.", MISUSED)
    path = write({setting.path: value})
    say(f"{setting.key} = {shown(setting, value)}, in {path}")
    if setting.variable in {name.upper() for name, text in os.environ.items() if text}:
        err.print(f"{setting.variable} is set in this environment and takes precedence.", style="yellow")
    if setting.path in AT_START:
        err.print("A running `memory ui` must be restarted: it reads this setting when it starts.", style="yellow")


@app.command()
def unset(key: KEY) -> None:
    """Remove a setting from settings.toml, so that its default applies."""
    setting = _find_setting(key)
    named = setting.key if setting else key  # unknown names can be removed too

    def remove(document: Any) -> None:
        if not _remove(document, {key, named, *_old_keys(setting)}):
            raise SettingError(f"{named} is not set in {named_workspace() / FILE_NAME}.")

    say(f"{named} is removed from {_edit(remove)}")


def write(values: Mapping[str, str | None]) -> Path:
    """Write these settings (by path) to settings.toml in one write, and remove those that are None. Returns the file.
    Ends the command without writing if the result would be invalid."""
    import tomlkit

    known = settings_of(Settings)

    def put(document: Any) -> None:
        for path, value in values.items():
            setting = known[path]
            if value is None:
                _remove(document, {setting.key, *_old_keys(setting)})
                continue
            _remove(document, _old_keys(setting))
            group, _, name = setting.key.rpartition(".")
            table = document.setdefault(group, tomlkit.table()) if group else document
            if not isinstance(table, dict):
                raise SettingError(f"{named_workspace() / FILE_NAME}: expected {group} to be a table.")
            table[name] = _as_toml(setting, value)

    return _edit(put, is_secret=any(known[path].is_secret for path in values))


def _old_keys(setting: Setting | None) -> set[str]:
    return {old for old, now in by_old_key(Settings).items() if now == setting}


def _remove(document: Any, keys: Iterable[str]) -> bool:
    """Remove these keys from the document; True if any was there."""
    found = False
    for key in keys:
        group, _, name = key.rpartition(".")
        table = document.get(group) if group else document
        if isinstance(table, dict) and name in table:
            del table[name]
            found = True
    return found


def setting_rows(settings: Settings) -> list[dict[str, Any]]:
    """Every listed setting with its redacted value and its source, most used first."""
    places = given(Settings, settings.workspace)
    rows = [
        {
            "key": setting.key,
            "variable": setting.variable,
            "value": shown(setting, written(attrgetter(path)(settings))),
            "from": places[path][1] if path in places else _unset_place(settings, path),
            "default": setting.default,
            "meaning": setting.meaning,
            "front": setting.is_front,
        }
        for path, setting in settings_of(Settings).items()
        if not setting.is_hidden
    ]
    return sorted(rows, key=lambda row: (not row["front"], row["key"].startswith(f"{ADVANCED}.")))


def shown(setting: Setting, text: str) -> str:
    """A redacted value: a command may have a key among its arguments, an address a password."""
    from memory_pipeline.redaction import Redactor

    if setting.is_secret:
        return "(set, not shown)" if text else ""
    return Redactor(b"").redact(text)  # shown values are not stored, so no salt is needed


def _unset_place(settings: Settings, path: str) -> str:
    kept = {"timezone": stored_zone, "start_date": stored_first_day}
    return "kept by the workspace" if path in kept and kept[path](settings.workspace) else "default"


def _find_setting(name: str) -> Setting | None:
    """The setting of this key, former key or variable."""
    variables = {setting.variable: setting for setting in settings_of(Settings).values()}
    return by_key(Settings).get(name) or by_old_key(Settings).get(name) or variables.get(name.upper())


def _edit(change: Callable[[Any], None], *, is_secret: bool = False) -> Path:
    """Change the file and write it if the result is valid."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    workspace = named_workspace()
    path = workspace / FILE_NAME

    def edited(old: bytes | None) -> bytes:
        document = tomlkit.parse(decode(old) if old else HEADER)
        change(document)
        text = tomlkit.dumps(document)
        check_file(workspace, text)
        return encode(text)

    if unknown := unknown_variables(Settings):
        raise SettingError(" ".join(unknown))
    try:
        edited(path.read_bytes() if path.exists() else None)  # before creating a directory for it
        if is_secret:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(0o600)
            path.chmod(0o600)
        update_file(path, edited, backups=workspace / "backups")
    except TOMLKitError as error:
        raise SettingError(f"{path} cannot be read: {error}. Fix it or remove it.") from None
    return path


def _as_toml(setting: Setting, value: str) -> Any:
    """A value in TOML as a user would write it: numbers as numbers, several paths as a list."""
    from pydantic import TypeAdapter, ValidationError

    if isinstance(setting.field.default, tuple):
        parts = [part for part in value.split(os.pathsep) if part.strip()]
        return [part if part.startswith("~") else os.path.abspath(part) for part in parts]  # noqa: PTH100
    kind: Any = setting.field.annotation
    try:
        read = TypeAdapter[Any](kind).validate_python(value)
    except ValidationError:
        return value  # reported when the file is checked
    return read if isinstance(read, bool | int | float | date) else value
