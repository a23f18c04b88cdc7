"""Lines that two people of a team approved independently, offered to the team's memory.

No sessions are read, only the promotions in each person's table `events`: lines that they accepted into their own
MEMORY.md. The team's workspace is an ordinary one. A common line becomes a row of `remembered` there, and a member of
the team decides on it in its REVIEW.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from memory_pipeline.embeddings.health import lexical_only
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.duplicates import Known, KnownLines
from memory_pipeline.proposals.events import PROMOTED, ProposalLog
from memory_pipeline.proposals.remembering import TEAM, NotRememberedError, Remembered, remember
from memory_pipeline.text.encoder import encoder_of
from memory_pipeline.text.relation import differs
from memory_pipeline.workspace.workspace import Workspace

MIN_PEOPLE = 2
"""Minimum number of people who approved the same line. A line of one person is personal."""


@dataclass
class Agreed:
    """A line that several people approved, with its latest wording."""

    text: str
    section: str
    promoted_at: datetime
    owners: set[str] = field(default_factory=set)

    @property
    def owner_names(self) -> str:
        return " and ".join([", ".join(sorted(self.owners)[:-1]), sorted(self.owners)[-1]])


@dataclass(frozen=True)
class Offered:
    """An agreed line and the stored proposal, or None with the reason if it could not be offered."""

    agreed: Agreed
    made: Remembered | None
    reason: str = ""


def agreed_lines(workspace: Workspace, people: Mapping[str, Lake]) -> list[Agreed]:
    """Lines that at least two of these people (by name) approved, oldest first. Two lines are compared as in reviewing,
    by words and by vectors if the workspace's model is installed, but never match with different numbers or a
    contradiction, as no member has seen both."""
    columns = ["happened_at", "proposal_id", "section", "text"]
    lines = sorted(
        (at, owner, proposal_id, section, text)
        for owner, lake in people.items()
        for at, proposal_id, section, text in ProposalLog(lake).events(PROMOTED).select(columns).iter_rows()
    )
    texts = [line[-1] for line in lines]
    by_words = not texts or lexical_only(workspace.settings)
    vectors = [None] * len(texts) if by_words else encoder_of(workspace.settings.embedding_model).encode(texts)
    layers, found = [KnownLines()], dict[str, Agreed]()
    for (at, owner, proposal_id, section, text), vector in zip(lines, vectors, strict=True):
        for layer in layers:  # similar lines that contradict each other ("always", "never") are in different layers
            same = layer.same(text, vector)
            if same is None or not differs(text, found[same.proposal_id or ""].text, cautious=True):
                break
        else:
            layer, same = KnownLines(), None
            layers.append(layer)
        key = same.proposal_id if same and same.proposal_id else f"{owner} {proposal_id}"
        if same is None:
            layer.add(Known(key, text), (), vector)
            found[key] = Agreed(text, section, at)
        group = found[key]
        group.owners.add(owner)
        group.text, group.section, group.promoted_at = text, section, at
    return [group for group in found.values() if len(group.owners) >= MIN_PEOPLE]


def offer(workspace: Workspace, agreed: Agreed, now: datetime) -> Offered:
    """Store the line as a proposal of the team, unless one with the same meaning exists, even a rejected one."""
    section = agreed.section if agreed.section in workspace.settings.sections else None
    try:
        made = remember(workspace, agreed.text, now, section=section, trust=TEAM, client=agreed.owner_names)
    except NotRememberedError as error:
        return Offered(agreed, None, f"{error}")
    return Offered(agreed, made)
