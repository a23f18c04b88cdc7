"""Settings come from the environment; a wrong one is a sentence that names the variable, its value and the way out."""

from datetime import date
from operator import attrgetter
from pathlib import Path

import pytest
import tomlkit

from memory_pipeline.settings import SettingError, Settings, keep_timezone, load_settings, named_workspace, variable
from memory_pipeline.settings.sources import FILE_NAME, FOREIGN, by_old_key, settings_of, warn
from memory_pipeline_tests.cases import each

EVERY = [
    # field, its variable, what is written, what is read
    ("workspace", "MEMORY_WORKSPACE", "/data/memory", Path("/data/memory")),
    ("lake", "MEMORY_LAKE", "file:///data/lake", "file:///data/lake"),
    ("session_dirs", "MEMORY_SESSION_DIRS", "/a:/b c", (Path("/a"), Path("/b c"))),
    ("default_session_dirs", "MEMORY_DEFAULT_SESSION_DIRS", "true", True),
    ("timezone", "MEMORY_TIMEZONE", "Europe/London", "Europe/London"),
    ("start_date", "MEMORY_START_DATE", "2024-02-29", date(2024, 2, 29)),
    ("user_name", "MEMORY_USER_NAME", "Mira", "Mira"),
    ("markers", "MEMORY_MARKERS", "brackets", "brackets"),
    ("idle_minutes", "MEMORY_IDLE_MINUTES", "0", 0),
    ("min_user_messages", "MEMORY_MIN_USER_MESSAGES", "1", 1),
    ("tool_text_limit", "MEMORY_TOOL_TEXT_LIMIT", "100", 100),
    ("redact", "MEMORY_REDACT", "false", False),
    ("token_estimate", "MEMORY_TOKEN_ESTIMATE", "chars4", "chars4"),
    ("observer.model", "OBSERVER_MODEL", "openai:gpt-5-mini", "openai:gpt-5-mini"),
    ("observer.base_url", "OBSERVER_BASE_URL", "http://localhost:8000/v1", "http://localhost:8000/v1"),
    ("observer.temperature", "OBSERVER_TEMPERATURE", "0", 0.0),
    ("observer.max_output_tokens", "OBSERVER_MAX_OUTPUT_TOKENS", "1000", 1000),
    ("observer.price", "OBSERVER_PRICE", "0.25/2", "0.25/2"),
    ("observer.fallback", "OBSERVER_FALLBACK", "true", True),
    ("reflector.model", "REFLECTOR_MODEL", "pi -p --no-session", "pi -p --no-session"),
    ("reflector.base_url", "REFLECTOR_BASE_URL", "http://localhost:8000/v1", "http://localhost:8000/v1"),
    ("reflector.temperature", "REFLECTOR_TEMPERATURE", "0.5", 0.5),
    ("reflector.max_output_tokens", "REFLECTOR_MAX_OUTPUT_TOKENS", "1000", 1000),
    ("reflector.price", "REFLECTOR_PRICE", "3/15", "3/15"),
    ("reflect_early_tokens", "MEMORY_REFLECT_EARLY_TOKENS", "5000", 5000),
    ("model_timeout", "MEMORY_MODEL_TIMEOUT", "2.5", 2.5),
    ("model_retries", "MEMORY_MODEL_RETRIES", "0", 0),
    ("model_concurrency", "MEMORY_MODEL_CONCURRENCY", "1", 1),
    ("effective_context", "MEMORY_EFFECTIVE_CONTEXT", "16000", 16_000),
    ("chunk_tokens", "MEMORY_CHUNK_TOKENS", "5000", 5000),
    ("daily_budget_usd", "MEMORY_DAILY_BUDGET_USD", "2.5", 2.5),
    ("daily_budget_tokens", "MEMORY_DAILY_BUDGET_TOKENS", "100000", 100_000),
    ("lookback_days", "MEMORY_LOOKBACK_DAYS", "14", 14),
    ("friction_min_points", "MEMORY_FRICTION_MIN_POINTS", "50", 50),
    ("distil_after_days", "MEMORY_DISTIL_AFTER_DAYS", "10", 10),
    ("pending_limit", "MEMORY_PENDING_LIMIT", "3", 3),
    ("proposal_expiry_days", "MEMORY_PROPOSAL_EXPIRY_DAYS", "3", 3),
    ("auto_promote", "MEMORY_AUTO_PROMOTE", "shadow", "shadow"),
    ("auto_fix", "MEMORY_AUTO_FIX", "true", True),
    ("todoist.enabled", "MEMORY_TODOIST", "true", True),
    ("todoist.api_token", "TODOIST_API_TOKEN", "t-1", "t-1"),
    ("brief_tokens", "MEMORY_BRIEF_TOKENS", "900", 900),
    ("mcp_seconds", "MEMORY_MCP_SECONDS", "2.5", 2.5),
    ("archive_after_days", "MEMORY_ARCHIVE_AFTER_DAYS", "30", 30),
    ("retention.messages", "MEMORY_KEEP_WORDS_DAYS", "365", 365),
    ("retention.keep_last", "MEMORY_KEEP_WORDS_LAST", "2", 2),
    ("retention.message_embeddings", "MEMORY_KEEP_DAYS_MESSAGE_EMBEDDINGS", "180", 180),
    ("retention.embeddings", "MEMORY_KEEP_DAYS_EMBEDDINGS", "365", 365),
    ("retention.summary_embeddings", "MEMORY_KEEP_DAYS_SUMMARY_EMBEDDINGS", "91", 91),
    ("retention.friction_clusters", "MEMORY_KEEP_DAYS_FRICTION_CLUSTERS", "400", 400),
    ("notify", "MEMORY_NOTIFY", "desktop", "desktop"),
    ("identity.directory", "MEMORY_IDENTITY_DIRECTORY", "/home/ann/.agents", Path("/home/ann/.agents")),
    ("identity.links", "MEMORY_IDENTITY_LINKS", "/a/X.md:/b c/X.md", (Path("/a/X.md"), Path("/b c/X.md"))),
    ("embedding_model", "EMBEDDING_MODEL", "nomic-ai/nomic-embed-text-v1.5", "nomic-ai/nomic-embed-text-v1.5"),
    ("qdrant.url", "QDRANT_URL", "http://localhost:6333", "http://localhost:6333"),
    ("qdrant.collection", "QDRANT_COLLECTION", "mine", "mine"),
    ("qdrant.api_key", "QDRANT_API_KEY", "k-1", "k-1"),
]


def test_every_setting_is_read_from_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = []
    for path, name, written, read in EVERY:
        with monkeypatch.context() as patch:
            patch.setenv(name, written)
            if variable(path) != name or attrgetter(path)(load_settings()) != read:
                wrong.append(name)
    assert wrong == []


def test_no_setting_is_left_out_above() -> None:
    not_alone = {"observer.fallback_model", "reflector.fallback_model"}  # see test_model_names.py
    assert {field for field, *_ in EVERY} | not_alone == set(settings_of(Settings))


def test_every_setting_says_what_it_is_for() -> None:
    assert [key for key, setting in settings_of(Settings).items() if not setting.meaning] == []


def test_an_empty_variable_is_an_unset_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty MEMORY_WORKSPACE must not become the current directory."""
    wrong = []
    for _, name, _, _ in EVERY:
        with monkeypatch.context() as patch:
            patch.delenv(name, raising=False)
            unset = load_settings()
            patch.setenv(name, "")
            if load_settings() != unset:
                wrong.append(name)
    assert wrong == []


@each(
    ("name", "value", "expected"),
    [
        ("MEMORY_TIMEZONE", "Mars/Olympus", "expected an IANA time zone such as Europe/London"),
        ("MEMORY_TIMEZONE", "../../etc/passwd", "expected an IANA time zone"),  # never a path
        ("MEMORY_START_DATE", "yesterday", "valid date"),
        ("MEMORY_IDLE_MINUTES", "-1", "greater than or equal to 0"),
        ("MEMORY_IDLE_MINUTES", "ten", "valid integer"),
        ("MEMORY_TOOL_TEXT_LIMIT", "99", "greater than or equal to 100"),
        ("MEMORY_LOOKBACK_DAYS", "0", "greater than or equal to 1"),
        ("MEMORY_LOOKBACK_DAYS", "91", "less than or equal to 90"),
        ("MEMORY_DEFAULT_SESSION_DIRS", "perhaps", "valid boolean"),
        ("OBSERVER_MODEL", "gpt-5", "expected provider:model, like openai:gpt-5-mini, or a command"),
        ("OBSERVER_PRICE", "cheap", "should match pattern"),
        ("REFLECTOR_MODEL", "gpt-5", "expected provider:model, like openai:gpt-5-mini, or a command"),
        ("MEMORY_REFLECT_EARLY_TOKENS", "0", "greater than or equal to 1"),
        ("MEMORY_DAILY_BUDGET_USD", "-1", "greater than or equal to 0"),
        ("MEMORY_IDENTITY_DIRECTORY", "agents", "expected absolute paths or ones that begin with ~"),
        ("MEMORY_IDENTITY_LINKS", "~/a:b/AGENTS.md", "but 'b/AGENTS.md' is neither"),
        ("MEMORY_WORKSPACE", "~no-such-user/memory", "expected a directory; there is no such user"),
        ("MEMORY_SESSION_DIRS", "~no-such-user/sessions", "expected a directory; there is no such user"),
    ],
)
def test_a_wrong_value_is_one_sentence(name: str, value: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingError) as caught:
        load_settings()
    sentence = str(caught.value)
    assert sentence.startswith(f"{name}={value!r}: ")
    assert expected in sentence
    assert sentence.endswith("; correct the variable or unset it for the default.")
    assert "\n" not in sentence and caught.value.__cause__ is None  # no list of pydantic's


def test_a_workspace_that_is_a_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes.md").write_text("mine")
    monkeypatch.setenv("MEMORY_WORKSPACE", str(tmp_path / "notes.md"))
    with pytest.raises(SettingError, match="expected a directory"):
        load_settings()


def test_the_workspace_is_absolute_from_wherever_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORY_WORKSPACE", "here/../there")
    assert load_settings().workspace == tmp_path / "there"
    monkeypatch.setenv("MEMORY_WORKSPACE", "~/memory")
    assert load_settings().workspace == Path.home() / "memory"


def test_a_workspace_behind_a_link_keeps_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person's link stays what they see, so that moving its target does not strand the workspace."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("MEMORY_WORKSPACE", str(tmp_path / "link"))
    assert load_settings().workspace == tmp_path / "link"


def test_blank_session_directories_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_SESSION_DIRS", "/a:: :~/b:")
    assert load_settings().session_dirs == (Path("/a"), Path.home() / "b")


def test_a_session_directory_has_one_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read below it is known by its path; another spelling would be read again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORY_SESSION_DIRS", f"here/../s:./s/:{tmp_path}/s")
    assert load_settings().session_dirs == (tmp_path / "s",) * 3


def test_the_api_key_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QDRANT_API_KEY", "k-secret")
    assert "k-secret" not in repr(load_settings())


def test_a_workspace_keeps_the_time_zone_that_it_was_made_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two zones in one workspace would hold every message twice; a journey with the machine must not do that."""
    monkeypatch.delenv("MEMORY_TIMEZONE")
    monkeypatch.setattr("tzlocal.get_localzone_name", lambda: "Europe/London")
    keep_timezone(load_settings())
    monkeypatch.setattr("tzlocal.get_localzone_name", lambda: "Asia/Tokyo")
    assert load_settings().timezone == "Europe/London"
    monkeypatch.setenv("MEMORY_TIMEZONE", "Asia/Tokyo")
    with pytest.raises(SettingError, match=r"MEMORY_TIMEZONE='Asia/Tokyo'.* was made with Europe/London"):
        load_settings()


@pytest.mark.usefixtures("as_nobody")
def test_a_workspace_that_cannot_be_made_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("/etc/passwd/memory", "/memory"):
        monkeypatch.setenv("MEMORY_WORKSPACE", place)
        with pytest.raises(SettingError, match="expected a directory that can be written to"):
            load_settings()


# --- settings.toml ---


def write_file(text: str) -> Path:
    """The settings.toml of the test's workspace."""
    path = named_workspace() / FILE_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def table_of(key: str, written: str) -> str:
    group, _, name = key.rpartition(".")
    return tomlkit.dumps({group: {name: written}} if group else {name: written})


def test_every_setting_is_read_from_the_file_also_by_its_former_key(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wrong, told = [], dict[str, str]()
    former = {setting.path: old for old, setting in by_old_key(Settings).items()}
    for path, name, written, read in EVERY:
        if path == "workspace":
            continue
        key = settings_of(Settings)[path].key
        for used in (key, former.get(path, key)):
            with monkeypatch.context() as patch:
                patch.delenv(name, raising=False)
                write_file(table_of(used, written))
                warn.cache_clear()
                caplog.clear()
                if attrgetter(path)(load_settings()) != read:
                    wrong.append(used)
                if bool(caplog.messages) != (used != key) or (caplog.messages and f"is now {key};" not in caplog.text):
                    told[used] = caplog.text
    assert (wrong, told) == ([], {})
    assert {"lookback_days", "brief.tokens", "observer.temperature", "keep_days.embeddings"} <= set(former.values())


def test_a_new_key_counts_before_the_former_one() -> None:
    write_file("lookback_days = 3\n[advanced]\nlookback_days = 5\n")
    assert load_settings().lookback_days == 5


def test_what_is_no_setting_any_more_is_ignored_with_one_sentence(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_file('owner = "ada"\n[observer]\nimages = "perhaps"\n')
    monkeypatch.setenv("MEMORY_KEEP_RUNS_DAYS", "never")
    monkeypatch.setenv("QDRANT_QUANTIZATION", "int8")
    monkeypatch.setenv("OWNER", "somebody")
    warn.cache_clear()
    assert load_settings().owner == "me"
    load_settings()
    told = sorted(caplog.messages)
    assert [sentence.partition(" is no longer a setting and is ignored: ")[0] for sentence in told] == [
        *(f"{path}:1: owner", f"{path}:3: observer.images", "MEMORY_KEEP_RUNS_DAYS", "QDRANT_QUANTIZATION")
    ]


def test_the_file_has_toml_s_own_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMORY_START_DATE")
    write_file(
        'start_date = 2024-02-29\nsession_dirs = ["/a", "~/b"]\nredact = false\n'
        '[observer]\ntemperature = 1\n[identity]\nlinks = ["~/AGENTS.md"]\n'
    )
    settings = load_settings()
    assert (settings.start_date, settings.redact, settings.observer.temperature) == (date(2024, 2, 29), False, 1.0)
    assert settings.session_dirs == (Path("/a"), Path.home() / "b")
    assert settings.identity.links == (Path.home() / "AGENTS.md",)


def test_the_environment_counts_before_the_file_value_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    write_file('user_name = "Mira"\n[observer]\nmodel = "openai:gpt-5-mini"\ntemperature = 0.7\n')
    monkeypatch.setenv("OBSERVER_MODEL", "ollama:qwen2.5:7b")
    settings = load_settings()
    assert (settings.observer.model, settings.observer.temperature) == ("ollama:qwen2.5:7b", 0.7)
    assert settings.user_name == "Mira"
    assert settings.observer.model_fields_set == {"model", "temperature"}


def test_the_file_counts_before_what_pi_has() -> None:
    path = Path.home() / ".pi/agent/memory.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"observer": {"model": "openai:gpt-5", "temperature": 0.1}}')
    write_file('[observer]\nmodel = "openai:gpt-5-mini"\n')
    assert (load_settings().observer.model, load_settings().observer.temperature) == ("openai:gpt-5-mini", 0.1)


@each(
    ("text", "line", "sentence"),
    [
        (
            'user_name = "A"\nuser_nmae = "B"\n',
            2,
            "user_nmae is not a setting; the nearest is user_name. Correct the name",
        ),
        (
            '[observer]\nmodel = "a:b"\nmodle = "c:d"\n',
            3,
            "observer.modle is not a setting; the nearest is observer.model.",
        ),
        ('[obsever]\nmodel = "a:b"\n', 2, "obsever.model is not a setting; the nearest is observer.model."),
        ('observer = "a:b"\n', 1, "observer is not a setting"),
        ('observer.modle = "a:b"\n', 1, "observer.modle is not a setting"),
        ('observer = {modle = "a:b"}\n', 1, "observer.modle is not a setting"),
        ('\nworkspace = "/elsewhere"\n', 2, "the file is in the workspace and cannot name it; set MEMORY_WORKSPACE."),
        ('session_dirs = ["/a", "b"]\n', 1, "expected absolute paths or ones that begin with ~, but 'b' is neither."),
        (
            "[advanced]\nidle_minutes = -1\n",
            2,
            "advanced.idle_minutes='-1': should be greater than or equal to 0; correct it or remove it",
        ),
        ("session_dirs = 3\n", 1, "session_dirs='3': should be a valid tuple; correct it or remove it"),
        ("[identity]\nlinks = [3]\n", 2, "identity.links='3': is not a valid path; correct it or remove it"),
        (
            "\n[advanced]\nobserver_temperature = 'hot'\n",
            3,
            "advanced.observer_temperature='hot': should be",
        ),
    ],
)
def test_a_wrong_line_of_the_file_is_named(text: str, line: int, sentence: str) -> None:
    path = write_file(text)
    with pytest.raises(SettingError) as caught:
        load_settings()
    assert str(caught.value).startswith(f"{path}:{line}: {sentence}")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_toml_is_named() -> None:
    path = write_file("user_name = Mira\n")
    with pytest.raises(SettingError, match=rf"^{path} cannot be read: .*line 1.*\. Fix it or remove it\.$"):
        load_settings()


def test_a_secret_that_is_wrong_is_not_told() -> None:
    write_file("[todoist]\napi_token = 1234567\n")
    with pytest.raises(SettingError, match=r"settings\.toml:2: todoist\.api_token='…': should be a valid string"):
        load_settings()


def test_the_zone_of_the_file_is_the_workspaces_too(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_timezone(load_settings())
    monkeypatch.delenv("MEMORY_TIMEZONE")
    path = write_file('timezone = "Asia/Tokyo"\n')
    with pytest.raises(SettingError) as caught:
        load_settings()
    assert str(caught.value).startswith(f"{path}:1: timezone='Asia/Tokyo': the workspace")


# --- names that nothing reads ---


@each(
    ("name", "sentence"),
    [
        ("MEMORY_TIME_ZONE", "the nearest is MEMORY_TIMEZONE."),
        ("MEMORY_EMBEDDING_MODEL", "the nearest is EMBEDDING_MODEL."),
        ("OBSERVER_MODLE", "the nearest is OBSERVER_MODEL."),
        ("REFLECTOR_IMAGES", "REFLECTOR_IMAGES is not a setting"),
        ("MEMORY_TODOIST_API_TOKEN", "the nearest is TODOIST_API_TOKEN."),
        ("MEMORY_QQWWXXJJZZKKVVQQ", "MEMORY_QQWWXXJJZZKKVVQQ is not a setting. Correct the variable or unset it"),
    ],
)
def test_a_variable_that_nothing_reads_is_an_error(name: str, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    with pytest.raises(SettingError) as caught:
        load_settings()
    assert str(caught.value).startswith(name) and sentence in str(caught.value)
    assert str(caught.value).endswith(f"where it is another program's, `env -u {name} memory …` leaves it out.")


@each("name", [*FOREIGN, "PI_MEMORY", "TODOIST_API_KEY", "QDRANT__SERVICE__HTTP_PORT"])
def test_variables_of_others_are_left_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    assert load_settings().user_name == "User"


# --- what tables of them say ---


def test_the_secrets_are_the_two_keys_and_an_address_that_may_hold_one() -> None:
    secret = [key for key, setting in settings_of(Settings).items() if setting.is_secret]
    assert secret == ["notify", "todoist.api_token", "qdrant.api_key"]


def test_defaults_are_as_a_person_would_write_them() -> None:
    defaults = {key: setting.default for key, setting in settings_of(Settings).items()}
    assert defaults["workspace"] == "~/.memory-pipeline" and defaults["redact"] == "true"
    assert (defaults["model_timeout"], defaults["observer.model"]) == ("180", "")
    assert defaults["start_date"] == "the day of the oldest session, when the workspace is created"
