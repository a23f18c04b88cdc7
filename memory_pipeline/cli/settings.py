"""`memory settings`: what holds, where it is set, and writing the workspace's settings.toml."""

import os
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer

from memory_pipeline.cli.console import MISUSED, err, fail, one_sentence, print_json, say, say_pair
from memory_pipeline.cli.workspace import settings_of_call
from memory_pipeline.markdown.safe_write import decode, encode, update_file
from memory_pipeline.settings import SettingError, Settings, check_file, named_workspace
from memory_pipeline.settings.marks import kept_first_day, kept_zone
from memory_pipeline.settings.sources import FILE_NAME, Setting, given, no_such, settings_of, unknown_variables, written

HEADER = (
    "# Settings of this workspace. A variable of the environment counts more; `memory settings` says what holds.\n\n"
)
AT_START = ("start_date", "timezone", "lookback_days", "todoist.enabled", "archive_after_days")
"""What Dagster's definitions are made from; everything else is read anew by each run and each sensor."""
AS_JSON = Annotated[bool, typer.Option("--json", help="Print as JSON.")]
KEY = Annotated[str, typer.Argument(help="The name in settings.toml, or the variable: observer.model, OBSERVER_MODEL.")]
app = typer.Typer(invoke_without_command=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def settings(context: typer.Context, as_json: AS_JSON = False) -> None:
    """Show the settings with their sources, and change them.

    `set` and `unset` write settings.toml in the workspace, which every process of it reads.
    """
    if context.invoked_subcommand is not None:
        return
    rows = rows_of(settings_of_call())
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


@app.command("set", context_settings={"ignore_unknown_options": True})  # -1 is a value
def set_(key: KEY, value: Annotated[str, typer.Argument(help="As it would stand in the variable.")]) -> None:
    """Write a setting into settings.toml; comments and order stay."""
    setting = _setting(key)
    if setting.key == "workspace":
        raise fail("The workspace is named by MEMORY_WORKSPACE; its own file cannot say where it lies.", MISUSED)

    path = write({setting.key: value})
    say(f"{setting.key} = {shown(setting, value)}, in {path}")
    if setting.variable in {name.upper() for name, text in os.environ.items() if text}:
        err.print(f"{setting.variable} is set in this environment and counts more.", style="yellow")
    if setting.key in AT_START:
        err.print("Where `memory ui` runs, start it again: it read this when it started.", style="yellow")


@app.command()
def unset(key: KEY) -> None:
    """Take a setting out of settings.toml, so that its default holds."""
    named = {s.variable: s.key for s in settings_of(Settings).values()}.get(key.upper(), key)

    def take_out(document: Any) -> None:
        table, name = _table(document, named, make=False)
        if not isinstance(table, dict) or name not in table:
            raise SettingError(f"{named} is not set in {named_workspace() / FILE_NAME}.")
        del table[name]

    say(f"{named} is taken out of {_edit(take_out)}")


def write(values: Mapping[str, str | None]) -> Path:
    """Write these settings, by key, into settings.toml in one go, and take out those that are None; the file.

    Ends the command where what came of it would be wrong; then nothing is written.
    """
    known = settings_of(Settings)

    def put(document: Any) -> None:
        for key, value in values.items():
            table, name = _table(document, key, make=value is not None)
            if table is None:
                continue
            if not isinstance(table, dict):
                raise SettingError(f"{named_workspace() / FILE_NAME}: {key.partition('.')[0]} should be a table.")
            if value is not None:
                table[name] = _as_toml(known[key], value)
            elif name in table:
                del table[name]

    return _edit(put, is_secret=any(known[key].is_secret for key in values))


def rows_of(settings: Settings) -> list[dict[str, Any]]:
    """Every setting with its value as it may be shown, and where it comes from; what people use most comes first."""
    places = given(Settings, settings.workspace)
    rows = []
    for key, setting in settings_of(Settings).items():
        group, _, name = key.rpartition(".")
        value = getattr(getattr(settings, group) if group else settings, name)
        rows.append(
            {
                "key": key,
                "variable": setting.variable,
                "value": shown(setting, written(value)),
                "from": places[key][1] if key in places else _unset_place(settings, key),
                "default": setting.default,
                "meaning": setting.meaning,
                "front": setting.is_front,
            }
        )
    return sorted(rows, key=lambda row: not row["front"])


def shown(setting: Setting, text: str) -> str:
    """A value without its secrets: a command may have a key among its arguments, an address a password."""
    from memory_pipeline.redaction import Redactor

    if setting.is_secret:
        return "(set, not shown)" if text else ""
    return Redactor(b"").redact(text)  # what is shown is not stored, so its marks need no salt of the workspace


def _unset_place(settings: Settings, key: str) -> str:
    kept = {"timezone": kept_zone, "start_date": kept_first_day}
    return "kept by the workspace" if key in kept and kept[key](settings.workspace) else "default"


def _setting(name: str) -> Setting:
    """By its key or its variable."""
    known = settings_of(Settings)
    for setting in known.values():
        if name in (setting.key, setting.variable) or name.upper() == setting.variable:
            return setting
    raise fail(
        f"{no_such(name, [*known, *(s.variable for s in known.values())])} `memory settings` lists all.", MISUSED
    )


def _edit(change: Callable[[Any], None], *, is_secret: bool = False) -> Path:
    """Change the file, check what came of it, and write it; nothing is written where it would be wrong."""
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

    with one_sentence(SettingError, code=MISUSED):
        if unknown := unknown_variables(Settings):
            raise SettingError(" ".join(unknown))
        try:
            edited(path.read_bytes() if path.exists() else None)  # before a directory is made for it
            if is_secret:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch(0o600)
                path.chmod(0o600)
            update_file(path, edited, backups=workspace / "backups")
        except TOMLKitError as error:
            raise SettingError(f"{path} cannot be read: {error}. Fix it or remove it.") from None
    return path


def _table(document: Any, key: str, *, make: bool) -> tuple[Any, str]:
    """The table that a key stands in, None where there is none and none is made, and the key's name in it."""
    import tomlkit

    group, _, name = key.rpartition(".")
    if group and group not in document and make:
        document[group] = tomlkit.table()
    return (document.get(group) if group else document), name


def _as_toml(setting: Setting, value: str) -> Any:
    """A value as a user would write it there: a number as a number, several paths as a list."""
    from pydantic import TypeAdapter, ValidationError

    if isinstance(setting.field.default, tuple):
        parts = [part for part in value.split(os.pathsep) if part.strip()]
        return [part if part.startswith("~") else os.path.abspath(part) for part in parts]  # noqa: PTH100
    kind: Any = setting.field.annotation
    try:
        read = TypeAdapter[Any](kind).validate_python(value)
    except ValidationError:
        return value  # what is wrong with it is said when the file is checked
    return read if isinstance(read, bool | int | float | date) else value
