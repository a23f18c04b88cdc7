"""Running jobs in this process, recorded in the workspace's Dagster instance so that the UI shows them."""

from __future__ import annotations

import functools
import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from threading import Timer
from typing import Any, TextIO, cast

from filelock import Timeout

import memory_pipeline
from memory_pipeline.defs.under_way import PROCESS_TAG, dead_runs
from memory_pipeline.distillation.periods import DAY, LEVEL_OF, LEVELS, periods_of
from memory_pipeline.errors import CannotGoOnError, TryAgainLaterError
from memory_pipeline.locks import FileLock
from memory_pipeline.markdown.safe_write import write_atomically
from memory_pipeline.operations.doctor import Automation
from memory_pipeline.operations.migrations import migrate
from memory_pipeline.settings import Settings
from memory_pipeline.settings.dagster_record import is_outage, postgres_record
from memory_pipeline.settings.marks import keep_private
from memory_pipeline.stages import OUT_OF_BUDGET
from memory_pipeline.workspace.free_space import disk_full, is_disk_full, is_used_up, require_space
from memory_pipeline.workspace.workspace import Workspace

HOME_VARIABLE = "DAGSTER_HOME"
DAEMON_SECONDS = 300.0
"""Without a heartbeat for so long the daemon does not run; Dagster itself waits as long."""
_STOPPING = (signal.SIGINT, signal.SIGTERM)
AGAIN_SECONDS = 0.05
"""From an interrupt that was lost to its second try."""


class DamagedInstanceError(CannotGoOnError):
    """Dagster cannot open its own files; the message says what to do."""

    def __init__(self, home: Path, error: Exception) -> None:
        said = " ".join(f"{error}".split())[:200]
        super().__init__(
            f"Dagster's files in {home} cannot be used ({type(error).__name__}: {said}). They hold the record of runs, "
            "not your memory, and can be made again: move the folder away "
            f"(`mv {home} {home}.broken`) and run it again."
        )


def dagster_yaml() -> Path:
    """The instance settings: beside the package when installed, at the top of a checkout."""
    package = Path(memory_pipeline.__file__).parent
    return next(p for p in (package / "dagster.yaml", package.parent / "dagster.yaml") if p.exists())


def prepare_home(settings: Settings) -> Path:
    """The DAGSTER_HOME of the workspace, which has today's format then, with its dagster.yaml; a user's own changes to
    that file are kept."""
    keep_private(settings.workspace)
    require_space(settings.workspace)
    migrate(settings)
    home = settings.dagster_home
    home.mkdir(parents=True, exist_ok=True)
    own = home / "dagster.yaml"
    before = own.read_bytes() if own.exists() else None
    # an empty one, of a disk that was full, would turn telemetry on
    if not before:
        write_atomically(own, dagster_yaml().read_bytes(), expected=before, backups=None)
    return home


@contextmanager
def instance_of(settings: Settings) -> Iterator[Any]:
    """The workspace's Dagster instance, its databases made by one process at a time. Where they lie in Postgres, a
    server that is out of reach is waited for some ten seconds, then `RecordUnavailableError`."""
    home = prepare_home(settings)
    with _in_postgres(settings), _opened(home) as instance:
        yield instance


@contextmanager
def _opened(home: Path) -> Iterator[Any]:
    import dagster as dg

    logging.getLogger("alembic").setLevel(logging.WARNING)
    with FileLock(home / "instance.lock"):
        try:
            with _named(home):
                instance = dg.DagsterInstance.from_config(str(home))
            instance.get_runs_count()  # the databases are made when they are first asked
            instance.event_log_storage.get_maximum_record_id()
            instance.all_instigator_state()
        except Exception as error:
            if is_outage(error) or is_disk_full(error, home):
                raise
            raise DamagedInstanceError(home, error) from error
    with instance:
        yield instance


@contextmanager
def _in_postgres(settings: Settings) -> Iterator[None]:
    """What fails meanwhile because Postgres is out of reach is a sentence, without Dagster's lines for each try."""
    if (record := postgres_record(settings)) is None:
        yield
        return
    with _quiet_retries():
        try:
            yield
        except Exception as error:
            if not is_outage(error):
                raise
            raise record.unavailable(error) from None


@contextmanager
def _quiet_retries() -> Iterator[None]:
    """Dagster tells the root logger of each try to reach Postgres, in several lines, and standard error of each event
    that it could not store."""

    def is_other(record: logging.LogRecord) -> bool:
        return not f"{record.msg}".startswith("Retrying failed database")

    root, stream = logging.getLogger(), sys.stderr
    root.addFilter(is_other)
    sys.stderr = cast("TextIO", _WithoutStoring(stream))
    try:
        yield
    finally:
        sys.stderr = stream
        root.removeFilter(is_other)


class _WithoutStoring:
    """A stream without what Dagster says of events that it could not store."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        is_told = text.startswith("Exception while writing logger call to event log")
        return len(text) if is_told else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _named(home: Path) -> Iterator[None]:
    """DAGSTER_HOME is this folder meanwhile: our dagster.yaml says with it where events go."""
    before = os.environ.get(HOME_VARIABLE)
    os.environ[HOME_VARIABLE] = f"{home}"
    try:
        yield
    finally:
        if before is None:
            del os.environ[HOME_VARIABLE]
        else:
            os.environ[HOME_VARIABLE] = before


@contextmanager
def only_run(settings: Settings) -> Iterator[None]:
    """One `memory run` at a time on a workspace. Raises `TryAgainLaterError`."""
    with only_one(settings, "run", f"Another `memory run` works on {settings.workspace}; wait for it to end."):
        yield


@contextmanager
def only_one(settings: Settings, what: str, otherwise: str) -> Iterator[None]:
    """One process at a time; the next gets `TryAgainLaterError`. A killed one leaves no lock behind."""
    lock = FileLock(prepare_home(settings) / f"{what}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise TryAgainLaterError(otherwise) from None
    try:
        yield
    finally:
        lock.release()


def automation_of(settings: Settings, instance: Any) -> Automation:
    """Which schedules and sensors are on and tick, whether the daemon runs, and when each asset was last made."""
    from dagster._core.scheduler.instigation import InstigatorStatus

    from memory_pipeline.defs.graph import build_definitions
    from memory_pipeline.defs.silent import silent

    repository: Any = build_definitions(settings).get_repository_def()
    changed = {state.name: state.status for state in instance.all_instigator_state()}
    automatic = [*repository.schedule_defs, *repository.sensor_defs]
    now = datetime.now(UTC)
    names = [one.name for one in automatic if one.default_status.value == "RUNNING"]
    switches = {name: changed.get(name) is not InstigatorStatus.STOPPED for name in names}
    beats = [status.last_heartbeat for status in instance.get_daemon_statuses().values() if status.last_heartbeat]
    newest = max((beat.timestamp for beat in beats), default=0.0)
    is_on = now.timestamp() - newest < DAEMON_SECONDS
    graph = repository.asset_graph
    by_day = [key for key in graph.executable_asset_keys if graph.get(key).partitions_def]  # others are made by hand
    keys = [key for key in graph.toposorted_asset_keys if key in by_day]
    made = {key.to_user_string(): instance.get_latest_materialization_event(key) for key in keys}
    return Automation(
        is_on=is_on,
        last_beat=datetime.fromtimestamp(newest, UTC) if newest else None,
        switches=switches,
        silent=silent(instance, automatic, now) if is_on else {},
        succeeded={name: datetime.fromtimestamp(e.timestamp, UTC) if e else None for name, e in made.items()},
        dead=dead_runs(instance),
    )


@dataclass
class Unfinished:
    """What is left of the days of runs."""

    failed: set[date] = field(default_factory=set)
    """Days that a stage failed on, which keeps later stages from all other days of the run."""
    out_of_budget: str = ""
    """The sentence that the budget of the models is used up."""

    def add(self, other: Unfinished) -> None:
        self.failed |= other.failed
        self.out_of_budget = self.out_of_budget or other.out_of_budget


def run_job(
    settings: Settings,
    instance: Any,
    job: str,
    days: tuple[date, date] | None = None,
    unfinished: Unfinished | None = None,
) -> str | None:
    """Run to the end; None when it succeeded, else what failed first, in one line: `STOPPED` if a user did it.
    `days` are the first and last partition: weeks and months are named by their first day. What it leaves of them is
    added to `unfinished`.

    A run over days leaves MEMORY.md and REVIEW.md alone: others may follow it, and `review_job` once after them all.
    """
    from dagster._core.events import JobFailureData, RunFailureReason

    from memory_pipeline.defs.graph import build_definitions
    from memory_pipeline.defs.orchestration import FAILED_DAYS, STOPPED, UNTRIED_DAYS
    from memory_pipeline.defs.partitions import range_tags

    span = range_tags(*days) if days else {}
    resolved = build_definitions(settings).resolve_job_def(job)
    keys = resolved.asset_layer.executable_asset_keys if days else set()
    with streams_kept(), lost_interrupts_again(), _shown_with_its_job(settings, instance, job):
        result = resolved.execute_in_process(
            instance=instance,
            asset_selection=sorted(key for key in keys if key.path[-1] != "memory_file") or None,
            tags={PROCESS_TAG: f"{os.getpid()}", **span},
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            raise_on_error=False,
        )
    if unfinished is not None:
        made = [event.step_materialization_data.materialization for event in result.get_asset_materialization_events()]
        spent = [one.metadata[OUT_OF_BUDGET] for one in made if OUT_OF_BUDGET in one.metadata]
        unfinished.out_of_budget = f"{spent[-1].value}" if spent else ""
    if result.success:
        return None
    ends = [e.event_specific_data for e in result.all_events if isinstance(e.event_specific_data, JobFailureData)]
    failures = [e.step_failure_data for e in result.all_events if e.is_step_failure]
    reasons = [_reason(failure.error) for failure in failures if failure.error]
    for told in (failure.user_failure_data.metadata for failure in failures if failure.user_failure_data):
        if unfinished is not None and FAILED_DAYS in told and not told[UNTRIED_DAYS].value:
            sentences: Any = told[FAILED_DAYS].value
            unfinished.failed.update(date.fromisoformat(sentence[:10]) for sentence in sentences)
    if any(STOPPED in reason for reason in reasons) or any(
        end.failure_reason is RunFailureReason.UNEXPECTED_TERMINATION for end in ends
    ):
        return STOPPED
    return reasons[0] if reasons else "The run failed; the Dagster UI shows its log."


@contextmanager
def _shown_with_its_job(settings: Settings, instance: Any, job: str) -> Iterator[None]:
    """Runs that begin meanwhile name the code location that the UI has the job from.

    `execute_in_process` has no parameter for it. Without it, the timeline and the job's page leave a run out, and it
    cannot be executed again.
    """
    from dagster._core.definitions.repository_definition import SINGLETON_REPOSITORY_NAME
    from dagster._core.remote_origin import RemoteRepositoryOrigin

    from memory_pipeline.defs.web_server import code_location

    origin = RemoteRepositoryOrigin(code_location(settings), SINGLETON_REPOSITORY_NAME).get_job_origin(job)
    create = instance.create_run_for_job
    instance.create_run_for_job = functools.partial(create, remote_job_origin=origin)
    try:
        yield
    finally:
        instance.create_run_for_job = create


def check_results(settings: Settings, instance: Any, days: set[date]) -> dict[str, dict[str, Any]]:
    """Per check ("asset/check"): how many of the days passed, and which failed, by the latest result of each day; of
    weeks and months those that have these days in them."""
    from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus as Status

    from memory_pipeline.defs.graph import build_definitions

    keys = [key for definition in build_definitions(settings).asset_checks or [] for key in definition.check_keys]
    found: dict[str, dict[str, Any]] = {
        f"{key.asset_key.to_user_string()}/{key.name}": {"passed": 0, "failed_days": []} for key in keys
    }
    of_level = {level: {f"{period.key}" for period in periods_of(level, days)} for level in LEVELS}
    anywhere = sorted(set().union(*of_level.values()))
    for record in instance.event_log_storage.get_asset_check_partition_info(keys, partition_keys=anywhere):
        if record.partition_key not in of_level[LEVEL_OF.get(record.check_key.asset_key.to_user_string(), DAY)]:
            continue
        result = found[f"{record.check_key.asset_key.to_user_string()}/{record.check_key.name}"]
        if record.latest_execution_status is Status.SUCCEEDED:
            result["passed"] += 1
        elif record.latest_execution_status is Status.FAILED:
            result["failed_days"].append(record.partition_key)
    return found


def quality_report_of(settings: Settings, instance: Any) -> Any:
    """The quality report of what the instance has stored."""
    from memory_pipeline.defs.graph import build_definitions
    from memory_pipeline.defs.quality import report_of

    return report_of(Workspace.open(settings), instance, build_definitions(settings).resolve_asset_graph())


def _reason(error: Any) -> str:
    while error.cause:
        error = error.cause
    return re.sub(r"^memory_pipeline[\w.]+: ", "", " ".join(error.message.split()))[:600]


@contextmanager
def streams_kept() -> Iterator[None]:
    """Give the process its standard output and error back afterwards.

    Dagster turns both into files of its own for the time of a step. Where these cannot be written, since the disk is
    full, it leaves them there, and what is to be told of it would be told to nobody.
    """
    kept = [(number, os.dup(number)) for number in (1, 2)]
    try:
        yield
    finally:
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)


@contextmanager
def lost_interrupts_again() -> Iterator[None]:
    """Deliver an interrupt once more that fell into what Python cleans up: it prints a trace of what is raised there,
    and goes on as if nothing had been said."""
    from dagster._core.errors import DagsterExecutionInterruptedError

    def again(lost: Any) -> None:
        if issubclass(lost.exc_type, (KeyboardInterrupt, DagsterExecutionInterruptedError)):
            later = Timer(AGAIN_SECONDS, os.kill, (os.getpid(), signal.SIGINT))
            later.daemon = True
            later.start()
        else:
            before(lost)

    before, sys.unraisablehook = sys.unraisablehook, again
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextmanager
def last_words(settings: Settings) -> Iterator[None]:
    """Say so when the process is ended by a signal that it cannot answer: a write into a mapped file on a disk that has
    become full (SIGBUS), the system that needs its memory, `kill -9`.

    A child of it waits at a pipe whose other end closes with the process.
    """
    reader, writer = os.pipe()
    if not (watcher := os.fork()):
        for number in _STOPPING:
            signal.signal(number, signal.SIG_IGN)
        os.close(writer)
        if not os.read(reader, 1):
            full = is_used_up(settings.workspace)
            why = disk_full(settings.workspace) if full else "Run it again; what is stored is whole."
            os.write(2, f"The run was ended from outside or by the system. {why}\n".encode())
        os._exit(0)
    os.close(reader)
    try:
        yield
    finally:
        os.write(writer, b".")
        os.close(writer)
        os.waitpid(watcher, 0)


@contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """A function that says whether somebody pressed Ctrl-C meanwhile, also where a library took the signal and went on.

    Python writes each signal's number to the pipe before any handler has a say.
    """
    reader, writer = os.pipe()
    for end in (reader, writer):
        os.set_blocking(end, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    seen = bytearray()

    def was_pressed() -> bool:
        with suppress(BlockingIOError):
            seen.extend(os.read(reader, 1024))
        return any(number in seen for number in _STOPPING)

    try:
        yield was_pressed
    finally:
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)
