"""Execution of jobs in this process, recorded in the workspace's Dagster instance so that the UI shows them."""

from __future__ import annotations

import logging
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

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
from memory_pipeline.text.sentences import clip
from memory_pipeline.workspace.free_space import is_disk_full, require_space
from memory_pipeline.workspace.workspace import Workspace

DAEMON_SECONDS = 300.0
"""Seconds without a heartbeat after which the daemon counts as stopped; Dagster itself waits as long."""
REPOSITORY_TAG = {".dagster/repository": "__repository__@memory_pipeline.definitions"}
"""The tag of the code location, by which the UI's timeline and job pages select runs; `execute_in_process` does not set
it."""
MAX_REASON = 600
"""Maximum characters of the reason of a failed run."""
MAX_ERROR = 200
"""Maximum characters of an error quoted in a sentence."""
_STOPPING = (signal.SIGINT, signal.SIGTERM)


class DamagedInstanceError(CannotGoOnError):
    """Dagster cannot open its own files; the message says what to do."""

    def __init__(self, home: Path, error: Exception) -> None:
        reason = " ".join(f"{error}".split())[:MAX_ERROR]
        super().__init__(
            f"Dagster's files in {home} cannot be used ({type(error).__name__}: {reason}). They hold the record of "
            "runs, not your memory, and can be recreated: move the folder away "
            f"(`mv {home} {home}.broken`) and run it again."
        )


def dagster_yaml() -> Path:
    """The instance settings: next to the package if installed, at the top of a checkout otherwise."""
    package = Path(memory_pipeline.__file__).parent
    return next(p for p in (package / "dagster.yaml", package.parent / "dagster.yaml") if p.exists())


def prepare_home(settings: Settings) -> Path:
    """The DAGSTER_HOME of the workspace with its dagster.yaml, after migrating the workspace to the current format. A
    user's changes to dagster.yaml are kept."""
    keep_private(settings.workspace)
    require_space(settings.workspace)
    migrate(settings)
    home = settings.dagster_home
    home.mkdir(parents=True, exist_ok=True)
    own = home / "dagster.yaml"
    before = own.read_bytes() if own.exists() else None
    # an empty file, left by a full disk, would enable telemetry
    if not before:
        write_atomically(own, dagster_yaml().read_bytes(), expected=before, backups=None)
    return home


@contextmanager
def instance_of(settings: Settings) -> Iterator[Any]:
    """The workspace's Dagster instance; one process at a time creates its databases.

    Raises `DamagedInstanceError` and, if the instance is in Postgres and the server is unreachable for about ten
    seconds, `RecordUnavailableError`.
    """
    home, record = prepare_home(settings), postgres_record(settings)
    try:
        with _open(home) as instance:
            yield instance
    except Exception as error:
        if record is None or not is_outage(error):
            raise
        raise record.unavailable(error) from None


def _open(home: Path) -> Any:
    import dagster as dg

    logging.getLogger("alembic").setLevel(logging.WARNING)
    with FileLock(home / "instance.lock"):
        try:
            instance = dg.DagsterInstance.from_ref(_instance_ref(home))
            instance.get_runs_count()  # the first query creates the databases
            instance.event_log_storage.get_maximum_record_id()
            instance.all_instigator_state()
        except Exception as error:
            if is_outage(error) or is_disk_full(error, home):
                raise
            raise DamagedInstanceError(home, error) from error
    return instance


def _instance_ref(home: Path) -> Any:
    """The instance configured in dagster.yaml; an event log in SQLite files reuses its open files."""
    from dagster._core.instance import InstanceRef

    ref = InstanceRef.from_dir(str(home))
    if ref.storage_data is None or ref.storage_data.class_name != "DagsterSqliteStorage":
        return ref
    storage = {"module": "memory_pipeline.defs.event_log", "class": "ReusingSqliteEventLogStorage"}
    config = {"base_dir": str(home / "history" / "runs")}
    return InstanceRef.from_dir(str(home), overrides={"event_log_storage": {**storage, "config": config}})


@contextmanager
def only_run(settings: Settings) -> Iterator[None]:
    """A lock for one `memory run` at a time on a workspace. Raises `TryAgainLaterError`."""
    with only_one(settings, "run", f"Another `memory run` is using {settings.workspace}; wait for it to end."):
        yield


@contextmanager
def only_one(settings: Settings, what: str, otherwise: str) -> Iterator[None]:
    """A lock for one process at a time; others get `TryAgainLaterError`. A killed process leaves no lock behind."""
    lock = FileLock(prepare_home(settings) / f"{what}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise TryAgainLaterError(otherwise) from None
    try:
        yield
    finally:
        lock.release()


def _definitions(settings: Settings) -> Any:
    """The definitions of the workspace, made when a command needs them: loading Dagster takes seconds."""
    from memory_pipeline.defs.graph import build_definitions
    from memory_pipeline.defs.placement import Placement

    return build_definitions(Placement(settings))


def automation_of(settings: Settings, instance: Any) -> Automation:
    """The state of automation: active and failing schedules and sensors, the daemon, and the last materialization of
    each asset."""
    repository = _definitions(settings).get_repository_def()
    states = {state.name: state for state in instance.all_instigator_state()}
    automatic = [*repository.schedule_defs, *repository.sensor_defs]
    names = [one.name for one in automatic if one.default_status.value == "RUNNING"]
    beats = [status.last_heartbeat for status in instance.get_daemon_statuses().values() if status.last_heartbeat]
    newest = max((beat.timestamp for beat in beats), default=0.0)
    is_on = datetime.now(UTC).timestamp() - newest < DAEMON_SECONDS
    graph = repository.asset_graph
    # others are materialized by hand or, as memory_effect, by a schedule alone
    by_day = [key for key in graph.executable_asset_keys if graph.get(key).partitions_def]
    keys = [key for key in graph.toposorted_asset_keys if key in by_day and key.path[-1] != "memory_effect"]
    made = {key.to_user_string(): instance.get_latest_materialization_event(key) for key in keys}
    return Automation(
        is_on=is_on,
        last_beat=datetime.fromtimestamp(newest, UTC) if newest else None,
        switches={name: name not in states or states[name].status.value != "STOPPED" for name in names},
        silent={state.name: why for state in states.values() if (why := _last_failure(instance, state))}
        if is_on
        else {},
        succeeded={name: datetime.fromtimestamp(e.timestamp, UTC) if e else None for name, e in made.items()},
        dead=[run.job_name for run in dead_runs(instance)],
    )


def _last_failure(instance: Any, state: Any) -> str:
    """A sentence if the last tick of this schedule or sensor failed while it is on, else ""."""
    ticks = instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=1) if state.is_running else []
    if not ticks or not ticks[0].is_failure:
        return ""
    error = ticks[0].error
    reason = clip(" ".join((error.cause or error).message.split()), MAX_ERROR) if error else "for no recorded reason"
    moment = datetime.fromtimestamp(ticks[0].timestamp, UTC)
    return f"{state.name} failed at its last tick, {moment:%Y-%m-%d %H:%M} UTC: {reason}"


@dataclass
class Unfinished:
    """Unfinished work of runs."""

    failed: set[date] = field(default_factory=set)
    """Days on which a stage failed, which keeps later stages from all other days of the run."""
    out_of_budget: str = ""
    """The message that the budget of the models is used up, if it is."""

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
    """Run the job to its end; None if it succeeded, else its first failure in one line.

    `days` are the first and last partition; weeks and months are identified by their first day. Unfinished work of the
    run is added to `unfinished`. A run over days does not touch MEMORY.md and REVIEW.md: other runs may follow, and
    then `review_job` once.
    """
    from memory_pipeline.defs.orchestration import FAILED_DAYS, UNTRIED_DAYS
    from memory_pipeline.defs.partitions import range_tags

    resolved = _definitions(settings).resolve_job_def(job)
    keys = resolved.asset_layer.executable_asset_keys if days else set()
    result = resolved.execute_in_process(
        instance=instance,
        asset_selection=sorted(key for key in keys if key.path[-1] != "memory_file") or None,
        tags={PROCESS_TAG: f"{os.getpid()}"} | REPOSITORY_TAG | (range_tags(*days) if days else {}),
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        raise_on_error=False,
    )
    failures = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    if unfinished is not None:
        made = [event.step_materialization_data.materialization for event in result.get_asset_materialization_events()]
        spent = [one.metadata[OUT_OF_BUDGET] for one in made if OUT_OF_BUDGET in one.metadata]
        unfinished.out_of_budget = f"{spent[-1].value}" if spent else ""
        for metadata in (failure.user_failure_data.metadata for failure in failures if failure.user_failure_data):
            if FAILED_DAYS in metadata and not metadata[UNTRIED_DAYS].value:
                sentences: Any = metadata[FAILED_DAYS].value
                unfinished.failed.update(date.fromisoformat(sentence[:10]) for sentence in sentences)
    if result.success:
        return None
    reasons = (_reason(failure.error) for failure in failures if failure.error)
    return next(reasons, "The run failed; the Dagster UI shows its log.")


def check_results(settings: Settings, instance: Any, days: set[date]) -> dict[str, dict[str, Any]]:
    """The number of passed days and the failed days by check ("asset/check"), from the latest result of each day; weeks
    and months count if they contain one of these days."""
    keys = [key for check in _definitions(settings).asset_checks or [] for key in check.check_keys]
    found: dict[str, dict[str, Any]] = {
        f"{key.asset_key.to_user_string()}/{key.name}": {"passed": 0, "failed_days": []} for key in keys
    }
    of_level = {level: {f"{period.key}" for period in periods_of(level, days)} for level in LEVELS}
    anywhere = sorted(set().union(*of_level.values()))
    for record in instance.event_log_storage.get_asset_check_partition_info(keys, partition_keys=anywhere):
        asset, status = record.check_key.asset_key.to_user_string(), record.latest_execution_status
        if status is None or record.partition_key not in of_level[LEVEL_OF.get(asset, DAY)]:
            continue
        result = found[f"{asset}/{record.check_key.name}"]
        if status.value == "SUCCEEDED":
            result["passed"] += 1
        elif status.value == "FAILED":
            result["failed_days"].append(record.partition_key)
    return found


def quality_report_of(settings: Settings, instance: Any) -> Any:
    """The quality report from the check results that the instance has stored."""
    from memory_pipeline.defs.quality import report_of

    return report_of(Workspace.open(settings), instance, _definitions(settings))


def _reason(error: Any) -> str:
    while error.cause:
        error = error.cause
    return re.sub(r"^memory_pipeline[\w.]+: ", "", " ".join(error.message.split()))[:MAX_REASON]


@contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """A function that returns whether Ctrl-C was pressed meanwhile, even if a library caught the signal and continued.

    Python writes the number of each signal to the pipe before any handler is called.
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
