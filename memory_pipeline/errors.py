"""Errors that somebody can do something about. Each message says what it is and what to do.

::

    MemoryPipelineError
    ├─ TryAgainLaterError           something else is in the way for now: a lock, a server
    │  ├─ IndexUnavailableError     the vector index cannot be used                           embeddings/index.py
    │  │  └─ IndexBusyError         … for another process uses it                             embeddings/index.py
    │  ├─ ModelUnavailableError     the model did not answer, however often it was asked      llm/errors.py
    │  │  └─ SetAsideError          … this one request; others it may answer                  llm/errors.py
    │  ├─ RecordUnavailableError    Postgres, which keeps Dagster's record, is out of reach    dagster_record.py
    │  ├─ TodoistBusyError          Todoist did not answer                            proposals/todoist/client.py
    │  └─ LakeUnavailableError      the object storage of the lake does not answer         lake/object_storage.py
    ├─ CannotGoOnError              the same would happen on every other day, now and later
    │  ├─ ModelMisconfiguredError   no request to the model can succeed                       llm/errors.py
    │  ├─ NoSuchPromptError         a prompt is not there, or misses a place                  llm/prompts.py
    │  ├─ TodoistRefusedError       Todoist does not take what it is told             proposals/todoist/client.py
    │  ├─ LakeRefusedError          it does not take what it is asked                      lake/object_storage.py
    │  ├─ OtherMarksError           … or has another time zone or salt than the workspace    lake/shared_marks.py
    │  ├─ LocksUnsupportedError     the file system of the workspace has no locks                      locks.py
    │  ├─ DiskFullError             the disk of the workspace has too little room     workspace/free_space.py
    │  ├─ RecordMisconfiguredError  what dagster.yaml says of Postgres cannot be used settings/dagster_record.py
    │  └─ DamagedInstanceError      Dagster cannot open its own files                           defs/runs.py
    ├─ SettingError                 a setting cannot be used                         settings/loading.py
    ├─ WrongFileError               a file of settings or marks cannot be read       settings/memory_json.py
    ├─ DamagedTableError            a file of a table cannot be read                          lake/store.py
    ├─ ReplacedMeanwhileError       another worker has written an object meanwhile         lake/storage.py
    ├─ ChangedMeanwhileError        somebody else wrote the file between reading and writing  markdown/safe_write.py
    ├─ CannotConnectError           an agent's file cannot be changed as asked             agents/agents.py
    ├─ EncoderUnavailableError      the embedding model is not there                          text/encoder.py
    ├─ NotFetchedError              an embedding model cannot be fetched                      text/model_store.py
    ├─ NotASessionError             the file is not a session that can be read                harnesses/model.py
    │  └─ NotReadableNowError       … but may be one later                                    harnesses/model.py
    ├─ NoSuchImageError             an image is not where its message says                    sessions/images.py
    ├─ TransientError               the model was busy: caught by the client                  llm/errors.py
    ├─ RequestRefusedError          the model does not answer this one request                llm/errors.py
    ├─ BudgetReachedError           the next call might pass the day's budget                 llm/errors.py
    ├─ NotRecordedError             no answer is recorded, and no model may be asked          llm/cache.py
    ├─ UnusableAnswerError          a model's answers say next to nothing                     reflections/types.py
    ├─ RecallLostError              a distillation lost too much of what it should keep       distillation/stage.py
    ├─ UnknownProposalError         no pending proposal has that id                           proposals/review.py
    ├─ NotRememberedError           a line cannot be a proposal                      proposals/remembering.py
    ├─ UnknownProjectError          no session is of the project that is named                  recall/folders.py
    ├─ CannotForgetError            what is to be forgotten is not known, or too much   operations/forgetting/request.py
    ├─ NoSuchPatternError           no friction pattern has that id                           recall/friction.py
    ├─ NoSuchLineError              no row has the id that `memory why` is asked for             recall/origin.py
    └─ UnreadableMemoryError        a memory file cannot be read or audited            operations/memory_text.py

One that a module raises and catches itself has a name with an underscore and is not listed.
"""

from __future__ import annotations

from collections.abc import Iterator


class MemoryPipelineError(Exception):
    """The base class of all expected errors: catching it hides no bug."""


class TryAgainLaterError(MemoryPipelineError):
    """Something else is in the way for now: a lock, a server. The message says what to do if it stays."""


class CannotGoOnError(MemoryPipelineError):
    """The same would happen on every other day, now and later: a setting is wrong. The message says which."""


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and the errors that led to it, the first one last."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
