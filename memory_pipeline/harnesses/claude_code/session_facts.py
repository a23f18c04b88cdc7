"""Facts about a session in the records of its Claude Code file: its id, title, folder and branch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from memory_pipeline.harnesses.authorship import Evidence
from memory_pipeline.harnesses.claude_code.records import Origin, Record
from memory_pipeline.harnesses.records import text_of


class SessionFacts:
    """Facts about a session, gathered record by record; `stem` is the name of its file."""

    def __init__(self, stem: str) -> None:
        self.cwd = ""
        self.branch = ""
        self.has_main_chain = False
        """Whether the file has messages other than those of a sub-agent."""
        self.summaries: list[tuple[str, str]] = []
        """Titles of conversations, each with the last record of its conversation."""
        self._stem = stem
        self._session_ids: Counter[str] = Counter()
        self._agent_id = ""
        self._titles: dict[str, str] = {}

    def add_envelope(self, kind: str, record: Record) -> None:
        """Read the session's data from a record of the conversation."""
        if isinstance(record.sessionId, str):
            self._session_ids[record.sessionId] += 1
        if not self.cwd:
            self.cwd, self.branch = text_of(record.cwd), text_of(record.gitBranch)
        if record.isSidechain is True:
            self._agent_id = self._agent_id or text_of(record.agentId)
        elif kind in ("user", "assistant"):
            self.has_main_chain = True

    def add_title(self, kind: str, record: Record) -> None:
        """Read a title given by the user (`custom-title`) or the model (`ai-title`)."""
        title = record.customTitle if kind == "custom-title" else record.aiTitle
        self._titles[kind] = text_of(title).strip() or self._titles.get(kind, "")

    @property
    def session_id(self) -> str:
        """The id in the file's name, if records have it, else the most frequent id; a sub-agent's id is appended."""
        most = self._session_ids.most_common(1)
        session_id = self._stem if self._stem in self._session_ids else most[0][0] if most else ""
        return f"{session_id}/{self._agent_id}" if self._agent_id and not self.has_main_chain else session_id

    def title(self, records: Container[str]) -> str:
        """The user's title, else the model's, else the latest summary of a conversation with these records."""
        own = [text for leaf, text in self.summaries if leaf in records]
        return self._titles.get("custom-title") or self._titles.get("ai-title") or (own[-1] if own else "")


def evidence_in(record: Record, origin: object) -> Evidence:
    """The evidence of a record for its author; `origin` is that of the record or of its attachment."""
    return Evidence(
        agent="claude_code",
        entrypoint=text_of(record.entrypoint),
        prompt_source=text_of(record.promptSource),
        turn_origin=text_of(record.turnOrigin),
        origin=text_of(origin.kind) if isinstance(origin, Origin) else "",
        cwd=text_of(record.cwd),
    )
