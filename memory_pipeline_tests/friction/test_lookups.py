"""What is looked up before the same work, or explained again: a skill that is missing."""

from memory_pipeline.friction.attempts import Session
from memory_pipeline.friction.lookups import find_patterns, lookups_in, slug
from memory_pipeline.friction.patterns import Pattern
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.friction.made import turns
from memory_pipeline_tests.rows import day_after

ASKED = "user: Release the kiln."


def looked_up(*sessions: tuple[str, ...], project: str | None = "kiln") -> list[Pattern]:
    found = []
    for i, lines in enumerate(sessions):
        found += lookups_in(
            Session(turns(*lines, session=f"s{i}", day=day_after(i - len(sessions))), "/src/kiln", project)
        )
    return find_patterns(found)


SEARCHES = (
    "WebSearch(query=pypi trusted publishing github actions)",
    "web_search(query=github actions pypi trusted publishing setup)",
    "google_web_search(query=trusted publishing pypi github actions)",
)
PAGES = (
    "WebFetch(url=https://docs.pypi.org/trusted-publishers/, prompt=How?)",
    "Bash(command=curl -s https://docs.pypi.org/trusted-publishers | head -50)",
    "exec_command(cmd=curl https://docs.pypi.org/trusted-publishers/)",
)
HELP = (
    "Bash(command=kiln fire --help)",
    "exec_command(cmd=kiln --help | head)",
    "bash(command=cd /src && kiln fire -h)",
)
DOCUMENTS = (
    "Read(file_path=/src/kiln/docs/releasing.md)",
    "Bash(command=sed -n 1,80p docs/releasing.md)",
    "read_file(absolute_path=/src/kiln/docs/releasing.md)",
)
WAYS = {"search": SEARCHES, "page": PAGES, "help": HELP, "document": DOCUMENTS}


@each("calls", WAYS.values(), ids=WAYS)
def test_the_same_is_looked_up_in_three_sessions_of_any_harness(calls: tuple[str, ...]) -> None:
    (pattern,) = looked_up(*((ASKED, f"call: {call}", "result: Here it is.") for call in calls))
    assert (pattern.kind, pattern.sessions) == ("missing_skill", 3)
    assert pattern.target_file.startswith(".agents/skills/") and pattern.target_file.endswith("/SKILL.md")
    assert "Release the kiln." in pattern.title
    assert pattern.change.startswith(pattern.target_file)
    assert looked_up(*((ASKED, f"call: {call}", "result: Here it is.") for call in calls[:2])) == []


@each("calls", WAYS.values(), ids=WAYS)
def test_one_session_is_no_pattern(calls: tuple[str, ...]) -> None:
    assert looked_up((ASKED, *(line for call in calls * 3 for line in (f"call: {call}", "result: x")))) == []


def test_evidence_is_what_was_looked_for_in_the_call() -> None:
    (one,) = lookups_in(Session(turns(ASKED, f"call: {SEARCHES[0]}", "result: x")))
    ((message_id, start, end),) = one.event.evidence
    assert message_id == "s1-1"
    assert SEARCHES[0][start:end] == "pypi trusted publishing github actions"


@each(
    "lines",
    [
        ("call: WebSearch(query=kiln cone chart)", "fails: no network"),
        ("call: WebFetch(url=https://example.org/a, prompt=x)", "result: status code 404"),
        ("call: WebFetch(url=http://localhost:3000/health, prompt=x)", "result: ok"),
        ("call: Read(file_path=/src/kiln/README.md)", "result: x"),  # read in any session
        ("call: Read(file_path=/src/kiln/oven.py)", "result: x"),
        ("call: Bash(command=make test)", "result: x"),
        ("call: WebSearch(query=kiln cone chart)", "refused: no"),
    ],
)
def test_what_is_no_lookup(lines: tuple[str, ...]) -> None:
    assert looked_up(*[(ASKED, *lines)] * 3) == []


def test_other_searches_are_others() -> None:
    queries = ("postgres vacuum settings", "react hook form errors", "terraform state lock dynamodb")
    assert looked_up(*((ASKED, f"call: WebSearch(query={query})", "result: x") for query in queries)) == []


STEPS = {
    "en": "To release, do this every time:\n1. Bump the version in pyproject.toml and run the whole test suite.\n"
    "2. Write the changelog from the merged pull requests.\n3. Tag the commit, push the tag and watch the workflow.\n"
    "4. Announce the release in the channel of the studio.",
    "de": "So geht ein Release, bitte jedes Mal so:\n1. Version in pyproject.toml erhöhen, alle Tests laufen lassen.\n"
    "2. Änderungen aus den gemergten Pull Requests ins Changelog schreiben.\n3. Commit taggen, Tag pushen und den "
    "Workflow beobachten.\n4. Den Release im Kanal der Werkstatt ankündigen.",
    "es": "Para publicar, haz esto cada vez:\n1. Sube la versión en pyproject.toml y pasa todas las pruebas.\n"
    "2. Escribe el registro de cambios con los pull requests fusionados.\n3. Etiqueta el commit, sube la etiqueta y "
    "vigila el flujo.\n4. Anuncia la versión en el canal del taller.",
}


@each("text", STEPS.values(), ids=STEPS)
def test_a_user_explains_the_same_in_three_sessions(text: str) -> None:
    (pattern,) = looked_up(*((f"user: {text}", "assistant: Done."),) * 3)
    assert pattern.title.startswith("You explain the same again: “")
    assert pattern.members[0].evidence[0][1:] == (0, len(text))
    assert looked_up(*((f"user: {text}", "assistant: Done."),) * 2) == []


def test_a_document_of_the_same_name_is_another_in_another_project() -> None:
    found = []
    for i, project in enumerate(("kiln", "cli", "web")):
        made = turns(ASKED, f"call: {DOCUMENTS[1]}", "result: x", session=f"s{i}")
        found += lookups_in(Session(made, None, project))
    assert find_patterns(found) == []


@each(
    ("text", "name"),
    [
        ("pypi trusted publishing github actions setup", "pypi-trusted-publishing-github-actions"),
        ("https://docs.pypi.org/trusted-publishers/", "trusted-publishers"),
        ("如何发布", "how-to"),
        ("../../etc/passwd", "etc-passwd"),
        ("\x00‮", "how-to"),
    ],
)
def test_the_folder_of_a_skill(text: str, name: str) -> None:
    assert slug(text) == name


@each("url", ["http://[::1", "http://[abc]/x", "http://\u2100.com/x"])
def test_what_is_no_url_keeps_nothing_from_being_found(url: str) -> None:
    looked_up(*((ASKED, f"call: WebFetch(url={url}, prompt=What?)", "result: It says so."),) * 3)
    assert slug(url)
