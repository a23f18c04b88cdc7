"""Whether a workspace is well: one finding per thing that can be wrong, each with what to do.

It looks and changes nothing, but that a damaged table or index is set aside as any reader does; what may be mended
without asking is done by `mend`. What Dagster knows is handed in, for nothing here knows Dagster.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import polars as pl
from filelock import Timeout

from memory_pipeline.agents.agents import CannotConnectError
from memory_pipeline.agents.connecting import describe as told_of_agents
from memory_pipeline.agents.hooks import describe as told_of_hooks
from memory_pipeline.embeddings.health import is_made_elsewhere, set_aside_files, vector_problems
from memory_pipeline.errors import CannotGoOnError, MemoryPipelineError, TryAgainLaterError
from memory_pipeline.lake.store import DamagedTableError, Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.llm.config import ModelConfig, observer_model, reflector_model
from memory_pipeline.llm.found import PROVIDERS
from memory_pipeline.locks import FileLock, LocksUnsupportedError
from memory_pipeline.markdown.safe_write import TEMPORARY_FILE_SECONDS
from memory_pipeline.markdown.temporary_files import find_temporary_files, remove_temporary_files
from memory_pipeline.operations.forgetting.forget import unfinished
from memory_pipeline.proposals.attention import judge_attention
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.proposals.memory_copies import memory_loss
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import default_roots, find_sources, roots
from memory_pipeline.sessions.expiring import expiring
from memory_pipeline.sessions.not_read import IS_NOT_READ
from memory_pipeline.settings import SettingError, Settings
from memory_pipeline.settings.marks import FIRST_DAY, SALT, ZONE, kept_zone, open_to_others
from memory_pipeline.workspace.free_space import MIN_FREE_BYTES
from memory_pipeline.workspace.workspace import Workspace

Level = Literal["ok", "warning", "problem"]
OK: Level = "ok"
WARNING: Level = "warning"
PROBLEM: Level = "problem"
MANY_FREE_BYTES = 4 * MIN_FREE_BYTES
LATE = timedelta(days=2)
"""A stage that last succeeded so long before the newest did stands still."""

STOPPED_FOR = timedelta(days=1)
"""Without a sign of the daemon and of any run for so long, what was to go by itself has stopped."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    about: str
    level: Level
    said: str
    fix: str = ""
    """A command, or what a user does, of what is not ok."""
    mend: Callable[[], object] | None = field(default=None, compare=False)
    """Does it, where that is safe without asking."""


@dataclass(frozen=True)
class Automation:
    """What Dagster knows of a workspace."""

    is_on: bool
    """Whether its daemon reported within the last minutes."""
    switches: Mapping[str, bool]
    """Schedules and sensors that are to run, by name, and whether each is on."""
    succeeded: Mapping[str, datetime | None]
    """When each asset was last made, None for never; UTC."""
    silent: Mapping[str, str] = field(default_factory=dict)
    """Of those that are on: which do not tick while the daemon runs, or fail, with a sentence."""
    last_beat: datetime | None = None
    """When the daemon reported last; None for never."""
    dead: Sequence[str] = ()
    """Runs that are recorded as running and whose process is gone."""


def examine(
    settings: Settings, automation: Callable[[], Automation | None], close_dead: Callable[[], object]
) -> list[Finding]:
    """All findings, in the order in which they should be mended. Dagster is asked last: who opens its home makes the
    workspace private."""
    workspace = Workspace(settings, Lake.from_settings(settings))
    found = [*_places(settings), *_space(settings), *_marks(settings), *_sessions(settings, workspace.lake)]
    found += [*_locks(settings), *_left_behind(settings), *_tables(workspace), *_vectors(workspace)]
    found += _models(settings)
    found += [*_agents(settings), *_review(workspace.lake)]
    try:
        known = automation()
    except (TryAgainLaterError, CannotGoOnError) as error:
        return [*found, Finding("Dagster", PROBLEM, f"{error}", "as it says")]
    return [*found, *_automation(known, close_dead)]


def mend(findings: Sequence[Finding]) -> list[Finding]:
    """Do what is safe without asking; those that were mended."""
    done = [finding for finding in findings if finding.mend and finding.level != OK]
    for finding in done:
        if finding.mend:
            finding.mend()
    return done


def _places(settings: Settings) -> Iterator[Finding]:
    workspace = settings.workspace
    if not workspace.is_dir():
        yield Finding("workspace", WARNING, f"{workspace} is not there yet", "memory run")
        return
    if not os.access(workspace, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("workspace", PROBLEM, f"{workspace} cannot be written", f"chmod u+rwx {_quoted(workspace)}")
        return
    yield Finding("workspace", OK, f"{workspace}")
    own = settings.settings_file
    yield Finding("settings", OK, f"{own}" if own.exists() else "none of your own: all as by default")
    seen = list(open_to_others(workspace))
    if seen:
        shown = f"{seen[0]}" + (f" and {len(seen) - 1} more" if len(seen) > 1 else "")
        yield Finding(
            "permissions",
            WARNING,
            f"others on this machine may look into {shown}",
            f"chmod -R go-rwx {_quoted(workspace)}",
            lambda: _make_private(seen),
        )
    else:
        yield Finding("permissions", OK, "the workspace and its files are for their owner only")
    with suppress(DamagedTableError):  # reported with the tables
        if loss := memory_loss(Lake.from_settings(settings), settings.memory_file):
            yield Finding("MEMORY.md", PROBLEM, loss, "put it back as it says")


def _make_private(paths: Sequence[Path]) -> None:
    for path in paths:
        path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o700)


def _space(settings: Settings) -> Iterator[Finding]:
    standing = next(p for p in (settings.workspace, *settings.workspace.parents) if p.exists())
    free = shutil.disk_usage(standing).free
    level: Level = PROBLEM if free < MIN_FREE_BYTES else WARNING if free < MANY_FREE_BYTES else OK
    said = f"{free / 1e9:,.1f} GB are free on the disk of {standing}"
    if level != OK:
        said += f"; a run needs {MIN_FREE_BYTES / 1e9:.2f}"
    yield Finding("disk", level, said, "" if level == OK else f"make room; `du -sh {_quoted(standing)}/*` says where")


def _marks(settings: Settings) -> Iterator[Finding]:
    zone = kept_zone(settings.workspace)
    yield Finding("time zone", OK, f"{zone or settings.timezone}" + ("" if zone else ", kept by the first run"))
    lake, copies = settings.lake_dir, settings.backups / "marks"
    for name in (ZONE, FIRST_DAY, SALT):
        if (copies / name).exists() and not (lake / name).exists():
            yield Finding("marks", WARNING, f"{lake / name} is gone; the next run puts its copy back", "memory run")


def _sessions(settings: Settings, lake: Lake) -> Iterator[Finding]:
    try:
        read = roots(settings)
    except SettingError as error:
        yield Finding("session files", PROBLEM, f"{error}", "memory settings set session_dirs DIR")
        return
    known = lake.read("files", columns=["path", "reason", "side_file_of"])
    for folder in read:
        is_folder = folder.is_dir()  # or a database that a variable names
        own = known.filter(pl.col("path").str.starts_with(f"{folder}{os.sep if is_folder else '#'}"))
        unread = own.filter(IS_NOT_READ).height
        if not os.access(folder, os.R_OK | (os.X_OK if is_folder else 0)):
            fix = f"chmod u+r{'x' if is_folder else ''} {_quoted(folder)}"
            yield Finding("session files", WARNING, f"{folder} cannot be read, so its sessions are missing", fix)
        elif not own.is_empty():
            said = f"{folder}: {own['reason'].null_count()} files read"
            yield Finding("session files", OK, said + (f", {unread} not: `memory status` names them" if unread else ""))
        elif not is_folder or any(folder.iterdir()):
            yield Finding("session files", WARNING, f"{folder}: nothing of it is read yet", "memory run")
        else:
            yield Finding("session files", OK, f"{folder} is empty: its agent has kept no session on this machine yet")
    now = datetime.now(UTC)
    if soon := expiring(Catalogue(lake, settings), find_sources(read), now):
        yield Finding("transcripts", WARNING, soon.sentence(now), "memory run --all")
    if settings.default_session_dirs:
        folders = default_roots()
        there = {agent for folder, agent in folders.items() if folder.exists()}
        absent = sorted(set(folders.values()) - there)
        if absent:
            yield Finding("session files", OK, f"agents without a folder here: {', '.join(absent)}")
    if not read:
        fix = "memory settings set session_dirs DIR"
        yield Finding("session files", WARNING, "no folder of a coding agent was found", fix)


def _locks(settings: Settings) -> Iterator[Finding]:
    home, backups = settings.dagster_home, settings.backups
    held = []
    for path in (
        home / "run.lock",
        home / "instance.lock",
        *backups.glob("*.lock"),
        *settings.index_dir.glob("*.lock"),
    ):
        if path.exists():
            try:
                with FileLock(path, timeout=0):
                    pass
            except Timeout:
                holder = _holder(path)
                held.append(f"{path.name} by " + (f"process {holder}" if holder else "another process"))
            except LocksUnsupportedError as error:
                yield Finding("locks", PROBLEM, f"{error}", "as it says")
                return
            except OSError as error:
                yield Finding("locks", PROBLEM, f"{path} cannot be used: {error}", f"ls -l {_quoted(path)}")
    said = f"in use: {'; '.join(held)}" if held else "none is held; one of a process that ended holds nothing"
    yield Finding("locks", OK, said)


def _holder(path: Path) -> int | None:
    """The process that holds it, where the system tells."""
    try:
        status = path.stat()
        lines = Path("/proc/locks").read_text("ascii").splitlines()
    except OSError:
        return None
    inode = f":{status.st_ino}"
    return next((int(line.split()[4]) for line in lines if line.split()[5].endswith(inode)), None)


def _left_behind(settings: Settings) -> Iterator[Finding]:
    """By processes that were killed, and quarantined damaged files."""
    if leftovers := find_temporary_files(settings.workspace, but_in=settings.dagster_home):
        hours = f"{TEMPORARY_FILE_SECONDS / 3600:.0f} h"
        yield Finding(
            "temporary files",
            WARNING,
            f"{len(leftovers)} of killed processes, older than {hours}: {leftovers[0]} …",
            "memory run",
            lambda: remove_temporary_files(settings.workspace, but_in=settings.dagster_home),
        )
    try:
        begun = unfinished(settings)
    except MemoryPipelineError as error:
        yield Finding("forgetting", PROBLEM, f"{error}", "memory forget")
        return
    if begun:
        yield Finding("forgetting", PROBLEM, "a `memory forget` was begun and did not end", "memory forget")


def _tables(workspace: Workspace) -> Iterator[Finding]:
    lake, whole = workspace.lake, 0
    for table in TABLES:
        try:
            lake.read(table)
            whole += 1
        except DamagedTableError as error:
            yield Finding("tables", PROBLEM, f"{error}", TABLES[table].fix)
    if whole == len(TABLES):
        yield Finding("tables", OK, f"all {whole} can be read")
    if aside := set_aside_files(workspace):
        fix = f"memory run --all, then rm -r {_quoted(*map(Path, aside))}"
        yield Finding("set aside", WARNING, f"damaged files: {', '.join(map(str, aside))}", fix)


def _vectors(workspace: Workspace) -> Iterator[Finding]:
    if is_made_elsewhere(workspace):
        yield Finding("index", OK, "none here: another machine makes memory of what this one sends to the bucket")
        return
    problems = vector_problems(workspace)
    for problem in problems:
        yield Finding("index", PROBLEM, problem, _command_in(problem) or "memory admin index rebuild")
    if not problems:
        yield Finding("index", OK, f"every row has its point; vectors of {workspace.settings.embedding_model}")


def _command_in(sentence: str) -> str:
    """The command that it names."""
    parts = sentence.split("`")
    return next((part for part in parts[1::2] if part.startswith("memory ")), "")


def _models(settings: Settings) -> Iterator[Finding]:
    named = {"observer": observer_model(settings), "reflector": reflector_model(settings)}
    if not any(named.values()):
        yield Finding("language model", OK, "none is set: observations are quotes; `memory setup` chooses one")
    for role, config in named.items():
        if config:
            yield _model(role, config)


def _model(role: str, config: ModelConfig) -> Finding:
    """Whether it could be asked; it is not."""
    if config.is_command:
        program = shlex.split(config.model)[0]
        if shutil.which(program):
            return Finding("language model", OK, f"{role}: {program} is there")
        return Finding("language model", PROBLEM, f"{role}: there is no command {program!r}", "memory setup")
    provider = next((p for p in PROVIDERS if config.model.startswith(f"{p.name}:")), None)
    if provider and not config.base_url and not any(os.environ.get(name, "").strip() for name in provider.variables):
        wanted = " or ".join(provider.variables)
        return Finding("language model", PROBLEM, f"{role}: {config.model} needs {wanted}", f"export {wanted}=…")
    return Finding("language model", OK, f"{role}: {config.model} can be asked")


def _agents(settings: Settings) -> Iterator[Finding]:
    try:
        told = [*told_of_agents(settings).items(), *told_of_hooks(settings).items()]
    except (CannotConnectError, OSError) as error:
        yield Finding("agents", PROBLEM, f"{error}", "memory agents connect")
        return
    for name, how in told:
        is_wrong = "lost it" in how or "no longer" in how or "silent" in how
        fix = f"memory {'agents hooks install' if 'hooks' in how else 'agents connect'} {name}"
        yield Finding("agents", PROBLEM if is_wrong else OK, f"{name}: {how}", fix if is_wrong else "")
    if not told:
        yield Finding("agents", OK, "none is shown the memory; `memory agents connect` lists them")


def _review(lake: Lake) -> Iterator[Finding]:
    try:
        verdict = judge_attention(ProposalLog(lake), datetime.now(UTC))
    except DamagedTableError:  # it is among the tables
        return
    if verdict.passed:
        yield Finding("review", OK, verdict.sentence)
    else:
        yield Finding("review", WARNING, verdict.sentence, "memory review")


def _automation(known: Automation | None, close_dead: Callable[[], object]) -> Iterator[Finding]:
    if known is None:
        yield Finding("Dagster", OK, "nothing is recorded yet")
        return
    if known.dead:
        said = f"{len(known.dead)} are recorded as running and their process is gone: {', '.join(known.dead)}"
        yield Finding("runs", WARNING, said, "memory run", close_dead)
    off = sorted(name for name, is_on in known.switches.items() if not is_on)
    if off:
        fix = "memory ui, then Automation: switch them on"
        yield Finding("schedules and sensors", WARNING, f"off: {', '.join(off)}", fix)
    else:
        yield Finding("schedules and sensors", OK, f"all {len(known.switches)} are on")
    for said in known.silent.values():
        yield Finding("schedules and sensors", PROBLEM, said, "memory ui, then Automation: its ticks say more")
    if known.is_on:
        yield Finding("daemon", OK, "it runs: new sessions are read by themselves")
    elif since := stopped_since(known, datetime.now(UTC)):
        said = f"it does not run since {since:%Y-%m-%d %H:%M} UTC, and nothing was made after that"
        yield Finding("daemon", PROBLEM, said, "memory ui, or memory admin service install to have it run always")
    else:
        yield Finding("daemon", WARNING, "it does not run, so nothing is read by itself", "memory ui")
    made = {name: at for name, at in known.succeeded.items() if at}
    newest = max(made.values(), default=None)
    for name, at in known.succeeded.items():
        if at is None:
            yield Finding("stages", WARNING if made else OK, f"{name} was never made", "memory run" if made else "")
        elif newest and newest - at > LATE:
            said = f"{name} was last made on {at:%Y-%m-%d %H:%M} UTC, others on {newest:%Y-%m-%d}"
            yield Finding("stages", WARNING, said, "memory run")
        else:
            yield Finding("stages", OK, f"{name} was last made on {at.astimezone(UTC):%Y-%m-%d %H:%M} UTC")


def stopped_since(known: Automation, now: datetime) -> datetime | None:
    """When a daemon that ran reported last, if nothing was made for a day since either: whoever calls `memory run`
    instead needs none."""
    signs = [known.last_beat, *known.succeeded.values()]
    newest = max(filter(None, signs), default=None)
    is_stopped = known.last_beat and newest and not known.is_on and now - newest > STOPPED_FOR
    return known.last_beat if is_stopped else None


def _quoted(*paths: Path) -> str:
    return shlex.join(map(str, paths))
