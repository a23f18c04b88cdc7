"""Repeated look-ups and explanations before the same work, which indicate a missing skill."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from memory_pipeline.friction.attempts import EDITING, USER, Attempt, Session, canonical_name
from memory_pipeline.friction.patterns import MISSING_SKILL, FrictionEvent, Pattern, cost, event_at, request_before
from memory_pipeline.text.sentences import clip
from memory_pipeline.text.similarity import overlap
from memory_pipeline.text.terms import terms

MIN_SESSIONS = 3
"""Minimum sessions with the same look-up: looking something up twice is normal learning."""
SAME_SEARCH = 0.5
"""Minimum share of common terms of two equal searches."""
SAME_INSTRUCTIONS = 0.6
MIN_INSTRUCTIONS = 200
"""Minimum characters of a message that explains how something is done."""
MAX_INSTRUCTIONS = 6_000
_SEARCH = re.compile(r"web_?search|search_?web|google|brave|tavily|exa\b|context7|search_docs|docs_search", re.I)
_FETCH = re.compile(r"fetch|browse|read_?url|open_?url|scrape|crawl", re.I)
_QUERY = re.compile(r"(?:query|queries|q|search_query|prompt|question|search)=(?P<query>.*?)(?:, [a-z_]+=|\)?$)", re.S)
_URL = re.compile(r"https?://[^\s'\"<>)|,\[\]]+")
_HELP = re.compile(
    r"(?:^|[;&|\s])(?:man (?P<man>[\w-]+)|"
    r"(?!(?:ls|du|df|free|sort|grep|psql|mysql) )(?P<program>[\w./-]+(?: [a-z][\w:-]*){0,2}) "
    r"(?:-{1,2}(?:long)?help|-h|help)\b)"
)
_UNSERVED = re.compile(
    r"\bstatus(?: code)?:? ?[45]\d\d\b|\b(?:40[0134]|50\d) (?:forbidden|not found|unauthorized|bad)", re.I
)
_SHOWN = re.compile(r"\b(?:cat|sed|head|less|bat|nl|more)\b[^|;&]*?(?P<path>[\w./~-]+\.(?:md|mdx|rst|adoc|txt))\b")
_LOCAL = re.compile(r"^(?:localhost|127\.|0\.0\.0\.0|\[?::1)")


@dataclass(frozen=True, slots=True)
class Lookup:
    """A look-up or an explanation."""

    event: FrictionEvent
    kind: str
    """The sort: search, page, help or instructions."""
    key: str
    """The key of equal look-ups; if empty, `terms` are compared."""
    terms: frozenset[str]
    request: str
    """The id of the user's message that requested the work."""
    asked: str
    """The beginning of that message."""


_DOCUMENT = re.compile(r"\.(?:md|mdx|rst|adoc|txt)$", re.I)
_ALWAYS_READ = re.compile(r"^(?:readme|changelog|claude|agents|gemini|memory|skill|todo|plan|license)\b", re.I)
"""Files that agents read in any session."""


def lookups_in(session: Session) -> Iterator[Lookup]:
    """The look-ups of one session."""
    turns = session.turns
    worked_on = {place for a in session.attempts if canonical_name(a.head) == EDITING and (place := a.path)}
    for attempt in session.attempts:
        if attempt.is_refused or attempt.result.is_error or _UNSERVED.search(attempt.result.text[:300]):
            continue
        call, request = attempt.call, turns[request_before(turns, attempt.position)]
        for kind, key, words in _lookups_of_call(attempt):
            # files of the task, or an agent's own instructions
            if key in worked_on or key.startswith(".") or "/." in key:
                continue
            start = max(call.text.find(words), 0)
            spans = [(call.message_id, start, start + len(words))]
            event = event_at(session, call, words, spans, cost(turns, attempt.position, attempt.ended))
            named = frozenset(terms(words)) if not key else frozenset[str]()
            yield Lookup(event, kind, key, named, request.message_id, clip(request.text, 200))
    yield from _instructions_in(session)


def _instructions_in(session: Session) -> Iterator[Lookup]:
    """The messages in which the user explains something in several steps."""
    turns = session.turns
    for position, turn in enumerate(turns):
        if turn.role == USER and MIN_INSTRUCTIONS <= len(turn.text) <= MAX_INSTRUCTIONS and _explains(turn.text):
            lost, minutes = cost(turns, request_before(turns, position), position)
            event = event_at(session, turn, lost=(min(lost, 1), min(minutes, 2.0)))
            yield Lookup(event, "instructions", "", frozenset(terms(turn.text)), turn.message_id, "")


def _lookups_of_call(attempt: Attempt) -> Iterator[tuple[str, str, str]]:
    """The look-ups of a call as (kind, key, verbatim text)."""
    call, command = attempt.call, attempt.command
    text = command if command is not None else call.text
    if command is not None:
        yield from _lookups_of_command(command)
        if not re.search(r"\b(?:curl|wget|lynx|xh|http)\b", command):
            return
    if _SEARCH.search(call.tool) and (query := _QUERY.search(text)):
        yield "search", "", query["query"].strip()[:300]
    elif command is None and (file := attempt.path) and _DOCUMENT.search(file):
        if not _ALWAYS_READ.match(file.rsplit("/", 1)[-1]):
            yield "page", file, file
    elif command is not None or _FETCH.search(call.tool):
        for url in dict.fromkeys(_URL.findall(text)):
            host, path = _parts(url)
            if not _LOCAL.match(host):
                yield "page", f"{host}{path.rstrip('/')}".lower(), url


def _lookups_of_command(command: str) -> Iterator[tuple[str, str, str]]:
    """The requests for help, and the documents that the command shows."""
    for found in _HELP.finditer(command):
        program = (found["man"] or found["program"]).rsplit("/", 1)[-1]
        yield "help", program.split()[0], found[0].strip(" ;&|")
    for shown in _SHOWN.finditer(command):
        place = "/".join(shown["path"].split("/")[-2:])
        if not _ALWAYS_READ.match(place.rsplit("/", 1)[-1]):
            yield "page", place, place


def _explains(text: str) -> bool:
    """Whether the message explains how to do something in several steps."""
    return len(re.findall(r"(?m)^\s*(?:[-*+]|\d+[.)])\s+\S", text)) >= 2 or text.count(". ") + text.count(".\n") >= 3


def find_patterns(lookups: Sequence[Lookup]) -> list[Pattern]:
    """The look-ups that recur in three sessions or more."""
    groups: dict[tuple[str, str, str], list[Lookup]] = defaultdict(list)
    leaders: dict[tuple[str, str], list[tuple[str, Lookup]]] = defaultdict(list)
    for lookup in sorted(lookups, key=lambda lookup: (lookup.event.at, lookup.event.event_id)):
        is_local = lookup.kind == "page" and "://" not in lookup.event.text
        place = (lookup.kind, lookup.event.project or "" if is_local else "")
        key = lookup.key
        if not key:
            least = SAME_INSTRUCTIONS if lookup.kind == "instructions" else SAME_SEARCH
            alike = (name for name, one in leaders[place] if overlap(one.terms, lookup.terms) >= least)
            key = next(alike, "")
            if not key:
                key = lookup.event.event_id
                leaders[place].append((key, lookup))
        groups[(*place, key)].append(lookup)
    recurring = (own for own in groups.values() if len({m.event.session_id for m in own}) >= MIN_SESSIONS)
    return [_pattern(members) for members in recurring]


def _pattern(members: Sequence[Lookup]) -> Pattern:
    kind = members[-1].kind
    newest, asked = members[-1].event, clip(members[-1].asked, 60)
    words = clip(newest.text, 90)
    name = slug(newest.text)
    requests = frozenset(m.request for m in members)
    events = tuple(m.event for m in members)
    if kind == "instructions":
        title = f"You explain the same again: “{words}”"
        note = f"write these instructions down once, as a skill or a command: “{clip(newest.text, 400)}”"
    else:
        looked = {"search": "searched for", "page": "read", "help": "asked for"}[kind]
        title = f"Before “{asked}” and the like, the same is looked up: “{words}”"
        times = len({e.session_id for e in events})
        note = f"write down what “{words}” tells; agents have {looked} it in {times} sessions"
    return Pattern(MISSING_SKILL, title, f".agents/skills/{name}/SKILL.md", events, note=note, requests=requests)


def slug(text: str) -> str:
    """The name of a folder, made from the first words."""
    words = re.findall(r"[a-z0-9]+", _URL.sub(lambda url: _parts(url[0])[1], text.lower()))
    return "-".join(words[:5])[:40].strip("-") or "how-to"


def _parts(url: str) -> tuple[str, str]:
    """Host and path of a URL; for other text, an empty host and the whole text."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", url
    return parts.netloc, parts.path
