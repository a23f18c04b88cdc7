"""The checks of a workspace: one finding for each possible problem, with a fix.

They change nothing, except that damaged tables and indexes are quarantined as by any reader; `mend` applies the safe
fixes. The state of Dagster is passed in, as this module does not import Dagster.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

import polars as pl
from filelock import Timeout

from memory_pipeline.agents.agents import CannotConnectError
from memory_pipeline.agents.connecting import describe as describe_connections
from memory_pipeline.agents.hooks import describe as describe_hooks
from memory_pipeline.embeddings.health import is_made_elsewhere, set_aside_files, vector_problems
from memory_pipeline.errors import CannotGoOnError, MemoryPipelineError, TryAgainLaterError
from memory_pipeline.lake.store import DamagedTableError, Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.llm.config import ModelConfig, observer_model, reflector_model
from memory_pipeline.llm.found import PROVIDERS
from memory_pipeline.locks import FileLock, LocksUnsupportedError
from memory_pipeline.markdown.safe_write import TEMPORARY_FILE_SECONDS, find_temporary_files, remove_temporary_files
from memory_pipeline.operations.forgetting.forget import unfinished
from memory_pipeline.proposals.applying import memory_loss
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import default_roots, find_sources, roots
from memory_pipeline.sessions.expiring import expiring
from memory_pipeline.sessions.file_rows import IS_NOT_READ
from memory_pipeline.settings import SettingError, Settings
from memory_pipeline.settings.marks import make_private, open_to_others, stored_zone
from memory_pipeline.workspace.free_space import MIN_FREE_BYTES
from memory_pipeline.workspace.workspace import Workspace

Level = Literal["ok", "warning", "problem"]
OK: Level = "ok"
WARNING: Level = "warning"
PROBLEM: Level = "problem"
MANY_FREE_BYTES = 4 * MIN_FREE_BYTES
LATE = timedelta(days=2)
"""A stage whose last success is this much older than the newest one is stuck."""

STOPPED_FOR = timedelta(days=1)
"""Time without a report of the daemon or a run after which automation counts as stopped."""


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    about: str
    level: Level
    said: str
    fix: str = ""
    """A command or an instruction; empty if the check passed."""
    mend: Callable[[], object] | None = field(default=None, compare=False)
    """A function that applies the fix, if that is safe."""


def _ok(about: str, said: str) -> Finding:
    return Finding(about, OK, said)


def _warning(about: str, said: str, fix: str, mend: Callable[[], object] | None = None) -> Finding:
    return Finding(about, WARNING, said, fix, mend)


def _problem(about: str, said: str, fix: str) -> Finding:
    return Finding(about, PROBLEM, said, fix)


@dataclass(frozen=True)
class Automation:
    """The state of Dagster's automation; times in UTC."""

    is_on: bool
    """Whether its daemon reported within the last minutes."""
    switches: Mapping[str, bool]
    """Schedules and sensors that should run, by name, and whether each is on."""
    succeeded: Mapping[str, datetime | None]
    """The last materialization of each asset, None for never."""
    silent: Mapping[str, str] = field(default_factory=dict)
    """Sentences on schedules and sensors that are on but fail, or do not tick while the daemon runs."""
    last_beat: datetime | None = None
    """The last report of the daemon; None for never."""
    dead: Sequence[str] = ()
    """Runs that are recorded as running although their process is gone."""


def examine(
    settings: Settings, automation: Callable[[], Automation | None], close_dead: Callable[[], object]
) -> list[Finding]:
    """All findings, in the order in which they should be fixed. Dagster is checked last, as opening its home makes the
    workspace private."""
    workspace = Workspace(settings, Lake.from_settings(settings))
    found = [*_places(settings), *_space(settings), _time_zone(settings), *_sessions(settings, workspace.lake)]
    found += [*_locks(settings), *_stray_files(settings), *_tables(workspace)]
    if not any(finding.about == "disk" and finding.level == PROBLEM for finding in found):
        found += _vectors(workspace)  # opening the index needs space
    found += [*_models(settings), *_agents(settings)]
    try:
        return [*found, *_automation(automation(), close_dead)]
    except (TryAgainLaterError, CannotGoOnError) as error:
        return [*found, _problem("Dagster", f"{error}", "as described")]


def mend(findings: Sequence[Finding]) -> list[Finding]:
    """Apply the safe fixes, and return the findings that they fixed."""
    done = [finding for finding in findings if finding.mend and finding.level != OK]
    for finding in done:
        if finding.mend:
            finding.mend()
    return done


def _places(settings: Settings) -> Iterator[Finding]:
    workspace, own = settings.workspace, settings.settings_file
    if not workspace.is_dir():
        yield _warning("workspace", f"{workspace} does not exist yet", "memory run")
        return
    if not os.access(workspace, os.R_OK | os.W_OK | os.X_OK):
        yield _problem("workspace", f"{workspace} cannot be written", f"chmod u+rwx {_quoted(workspace)}")
        return
    yield _ok("workspace", f"{workspace}")
    yield _ok("settings", f"{own}" if own.exists() else "all have their defaults")
    if seen := list(open_to_others(workspace)):
        said = f"other users of this machine can read {seen[0]}" + (f" and {len(seen) - 1} more" if seen[1:] else "")
        yield _warning("permissions", said, f"chmod -R go-rwx {_quoted(workspace)}", partial(make_private, seen))
    else:
        yield _ok("permissions", "only the owner can read the workspace and its files")
    with suppress(DamagedTableError):  # it is among the tables
        if loss := memory_loss(Lake.from_settings(settings), settings.memory_file):
            yield _problem("MEMORY.md", loss, "restore it as described")


def _space(settings: Settings) -> Iterator[Finding]:
    place = next(p for p in (settings.workspace, *settings.workspace.parents) if p.exists())
    free = shutil.disk_usage(place).free
    said = f"{free / 1e9:,.1f} GB are free on the disk of {place}"
    if free >= MANY_FREE_BYTES:
        yield _ok("disk", said)
        return
    level: Level = PROBLEM if free < MIN_FREE_BYTES else WARNING
    needed = f"{said}; a run needs {MIN_FREE_BYTES / 1e9:.2f}"
    yield Finding(
        "disk", level, needed, f"free some space; du -xh {_quoted(place)} | sort -h | tail lists the largest folders"
    )


def _time_zone(settings: Settings) -> Finding:
    zone = stored_zone(settings.workspace)
    local = datetime.now().astimezone()
    is_away = zone and local.utcoffset() != local.astimezone(ZoneInfo(zone)).utcoffset()
    if is_away and "timezone" not in settings.model_fields_set:
        said = f"days are those of {zone}, the zone of the first run, and this machine is in {local:%Z}"
        return _warning("time zone", said, "ignore it on a journey; else MEMORY_WORKSPACE=DIR memory run starts anew")
    return _ok("time zone", f"{zone or settings.timezone}" + ("" if zone else ", to be fixed by the first run"))


def _sessions(settings: Settings, lake: Lake) -> Iterator[Finding]:
    about, now = "session files", datetime.now(UTC)
    try:
        folders = roots(settings)
    except SettingError as error:
        yield _problem(about, f"{error}", "memory settings set session_dirs DIR")
        return
    known = lake.read("files", columns=["path", "reason", "side_file_of"])
    for folder in folders:
        is_folder = folder.is_dir()  # or a database given by an environment variable
        own = known.filter(pl.col("path").str.starts_with(f"{folder}{os.sep if is_folder else '#'}"))
        if not os.access(folder, os.R_OK | (os.X_OK if is_folder else 0)):
            fix = f"chmod u+r{'x' if is_folder else ''} {_quoted(folder)}"
            yield _warning(about, f"{folder} cannot be read, so its sessions are missing", fix)
        elif not own.is_empty():
            unread = own.filter(IS_NOT_READ).height
            more = f", {unread} not: `memory status` names them" if unread else ""
            yield _ok(about, f"{folder}: {own['reason'].null_count()} files read{more}")
        elif not is_folder or any(folder.iterdir()):
            yield _warning(about, f"{folder}: nothing in it was read yet", "memory run")
        else:
            yield _ok(about, f"{folder} is empty: its agent has kept no session on this machine yet")
    if soon := expiring(Catalogue(lake, settings), find_sources(folders), now):
        yield _warning("transcripts", soon.sentence(now), "memory run --all")
    if settings.default_session_dirs:
        agents = default_roots()
        present = {agent for folder, agent in agents.items() if folder.exists()}
        for folder in (folder for folder, agent in agents.items() if agent not in present):
            if not known.filter(pl.col("path").str.starts_with(f"{folder}{os.sep}")).is_empty():
                said = f"{folder} is gone; what was read from it stays in the memory"
                yield _warning(about, said, "move it back, or memory settings set session_dirs DIR with its new place")
    if not folders:
        said = "no folder of a coding agent was found, so there is nothing to read"
        yield _warning(about, said, "use an agent once, or memory settings set session_dirs DIR with its transcripts")


def _locks(settings: Settings) -> Iterator[Finding]:
    own = [settings.dagster_home / name for name in ("run.lock", "instance.lock")]
    held = []
    for path in (*own, *settings.backups.glob("*.lock"), *settings.index_dir.glob("*.lock")):
        if not path.exists():
            continue
        try:
            with FileLock(path, timeout=0):
                pass
        except Timeout:
            held.append(f"{path.name} by {_holder(path)}")
        except LocksUnsupportedError as error:
            yield _problem("locks", f"{error}", "as described")
            return
        except OSError as error:
            yield _problem("locks", f"{path} cannot be used: {error}", f"ls -l {_quoted(path)}")
    yield _ok("locks", f"in use: {', '.join(held)}" if held else "none is held")


def _holder(path: Path) -> str:
    """The process that holds a lock, with its id if the system reports it."""
    with suppress(OSError):
        inode = f":{path.stat().st_ino}"
        for line in map(str.split, Path("/proc/locks").read_text("ascii").splitlines()):
            if line[5].endswith(inode):
                return f"process {line[4]}"
    return "another process"


def _stray_files(settings: Settings) -> Iterator[Finding]:
    """Findings on files left by killed processes."""
    if leftovers := find_temporary_files(settings.workspace, but_in=settings.dagster_home):
        age = f"older than {TEMPORARY_FILE_SECONDS / 3600:.0f} h"
        said = f"{len(leftovers)} left by killed processes, {age}: {leftovers[0]} …"
        remove = partial(remove_temporary_files, settings.workspace, but_in=settings.dagster_home)
        yield _warning("temporary files", said, "memory run", remove)
    try:
        if unfinished(settings):
            yield _problem("forgetting", "a `memory forget` was interrupted", "memory forget")
    except MemoryPipelineError as error:
        yield _problem("forgetting", f"{error}", "memory forget")


def _tables(workspace: Workspace) -> Iterator[Finding]:
    whole = 0
    for table in TABLES:
        try:
            workspace.lake.read(table)
            whole += 1
        except DamagedTableError as error:
            yield _problem("tables", f"{error}", TABLES[table].fix)
    if whole == len(TABLES):
        yield _ok("tables", f"all {whole} can be read")
    if aside := set_aside_files(workspace):
        fix = f"memory run --all, then rm -r {_quoted(*map(Path, aside))}"
        yield _warning("quarantined", f"damaged files: {', '.join(map(str, aside))}", fix)


def _vectors(workspace: Workspace) -> Iterator[Finding]:
    if is_made_elsewhere(workspace):
        yield _ok("index", "none here: another machine processes what this one pushes to the bucket")
        return
    problems = vector_problems(workspace)
    for problem in problems:
        named = (part for part in problem.split("`")[1::2] if part.startswith("memory "))
        yield _problem("index", problem, next(named, "memory admin index rebuild"))
    if not problems:
        yield _ok("index", f"every row is indexed, with vectors of {workspace.settings.embedding_model}")


def _models(settings: Settings) -> Iterator[Finding]:
    named = {"observer": observer_model(settings), "reflector": reflector_model(settings)}
    if not any(named.values()):
        yield _ok("language model", "none is set: observations are quotes; `memory setup` chooses one")
    for role, config in named.items():
        if config:
            yield _model(role, config)


def _model(role: str, config: ModelConfig) -> Finding:
    """Whether the model is available; no request is sent."""
    about = "language model"
    if config.is_command:
        program = shlex.split(config.model)[0]
        if shutil.which(program):
            return _ok(about, f"{role}: {program} is installed")
        return _problem(about, f"{role}: there is no command {program!r}", "memory setup")
    provider = next((p for p in PROVIDERS if config.model.startswith(f"{p.name}:")), None)
    if provider and not config.base_url and not any(os.environ.get(name, "").strip() for name in provider.variables):
        wanted = " or ".join(provider.variables)
        return _problem(about, f"{role}: {config.model} needs {wanted}", f"export {wanted}=…")
    return _ok(about, f"{role}: {config.model} can be called")


def _agents(settings: Settings) -> Iterator[Finding]:
    try:
        told = [*describe_connections(settings).items(), *describe_hooks(settings).items()]
    except (CannotConnectError, OSError) as error:
        yield _problem("agents", f"{error}", "memory agents connect")
        return
    for name, how in told:
        if "missing from" in how or "no longer" in how or "do nothing" in how:
            command = "hooks install" if "hooks" in how else "connect"
            yield _problem("agents", f"{name}: {how}", f"memory agents {command} {name}")
        else:
            yield _ok("agents", f"{name}: {how}")
    if not told:
        yield _ok("agents", "none is connected; `memory agents` lists them")


def _automation(known: Automation | None, close_dead: Callable[[], object]) -> Iterator[Finding]:
    if known is None:
        yield _ok("Dagster", "nothing is recorded yet")
        return
    about = "schedules and sensors"
    if known.dead:
        said = f"{len(known.dead)} are recorded as running but their processes have ended: {', '.join(known.dead)}"
        yield _warning("runs", said, "memory run", close_dead)
    if off := sorted(name for name, is_on in known.switches.items() if not is_on):
        yield _warning(about, f"off: {', '.join(off)}", "memory ui, then Automation: switch them on")
    else:
        yield _ok(about, f"all {len(known.switches)} are on")
    for said in known.silent.values():
        yield _problem(about, said, "memory ui, then Automation: its ticks have the details")
    if known.is_on:
        yield _ok("daemon", "it is running: new sessions are read automatically")
    elif since := stopped_since(known, datetime.now(UTC)):
        said = f"it has not run since {since:%Y-%m-%d %H:%M} UTC, and nothing has been updated since"
        yield _problem("daemon", said, "memory ui, or memory admin service install to keep it running")
    else:
        yield _warning("daemon", "it is not running, so new sessions are not read automatically", "memory ui")
    newest = max(filter(None, known.succeeded.values()), default=None)
    for name, at in known.succeeded.items():
        if at is None and newest:
            yield _warning("stages", f"{name} was never built", "memory run")
        elif at and newest and newest - at > LATE:
            said = f"{name} was last built on {at:%Y-%m-%d %H:%M} UTC, others on {newest:%Y-%m-%d}"
            yield _warning("stages", said, "memory run")
        else:
            made = f"last built on {at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if at else "never built"
            yield _ok("stages", f"{name} was {made}")


def stopped_since(known: Automation, now: datetime) -> datetime | None:
    """The last report of a stopped daemon, if there was no materialization for a day either: users of `memory run` need
    no daemon."""
    signs = [known.last_beat, *known.succeeded.values()]
    newest = max(filter(None, signs), default=None)
    is_stopped = known.last_beat and newest and not known.is_on and now - newest > STOPPED_FOR
    return known.last_beat if is_stopped else None


def _quoted(*paths: Path) -> str:
    return shlex.join(map(str, paths))
