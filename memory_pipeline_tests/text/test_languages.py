"""What a text shows in other languages than English, and which one it is in."""

from benchmarks.languages import FOLDER, ROLES, answer, sentences
from memory_pipeline.text.kinds import is_passing, is_question, kind_of_user
from memory_pipeline.text.languages.identify import UNKNOWN, language_of, language_of_speaker
from memory_pipeline.text.lines import orders, supposes
from memory_pipeline.text.relation import REPLACES, differs, relation
from memory_pipeline_tests.cases import each

LANGUAGES = sorted(path.stem for path in FOLDER.glob("*.txt"))


@each(
    ("text", "language"),
    [
        ("nicht pip, poetry", "de"),
        ("Die Methode `getUser` in src/app.ts bitte nie direkt aufrufen", "de"),
        ("Non, pas pip, poetry", "fr"),
        ("Usa siempre Postgres, nunca SQLite", "es"),
        ("pipではなくpoetryを使って", "ja"),
        ("用 pnpm 不要用 npm install", "zh"),
        ("資料庫一律使用Postgres", "zh"),
        ("로그에 남기지 마세요", UNKNOWN),
        ("перенеси обработчик в отдельный сервис", UNKNOWN),
        # English, however few words there are and whatever they are about
        ("fix tests", "en"),
        ("no conosle logs!", "en"),
        ("use uv, never pip", "en"),
        ("TypeScript passes", "en"),
        ("git push --force origin main", "en"),
        ("rename `die_alte_funktion` to `old_function` and run it", "en"),
        ("The label 上传 is wrong, it should be 提交 in the whole of the form", "en"),
        ("", "en"),
        ("12:30", "en"),
    ],
)
def test_the_language_of_a_short_text(text: str, language: str) -> None:
    assert language_of(text) == language


@each(
    ("texts", "language"),
    [
        (
            ["Bitte verschiebe den Worker in einen eigenen Dienst", "und lass danach alle Tests noch einmal laufen"],
            "de",
        ),
        (["sposta il worker in un servizio separato e poi esegui di nuovo tutti i test per favore grazie"], UNKNOWN),
        (["move the worker to its own service and run all of the tests again, will you"], "en"),
        (["小白，把 send_email.py 程式移至 pi-mono 專案功能模組內，然後跑測試"], "zh"),
    ],
)
def test_the_language_of_a_speaker(texts: list[str], language: str) -> None:
    assert language_of_speaker(texts) == language


@each("language", LANGUAGES)
def test_roles_are_told_apart(language: str) -> None:
    """Of the sentences that the cues were not adjusted to; taken for English, one in five is right."""
    held_out = [(role, text) for number, role, text in sentences(language) if number % 2]
    right = sum(answer(text) in ROLES[role] for role, text in held_out)
    assert right >= 0.85 * len(held_out)


@each(
    ("text", "kind"),
    [
        ("Ab jetzt immer Postgres verwenden, niemals SQLite", "rule"),
        ("Nein, nicht pip, sondern poetry", "correction"),
        ("Wir nehmen Redis statt Memcached", "decision"),
        ("Il faut toujours lancer les tests avant de pousser", "rule"),
        ("Non, le port est 5433, pas 5432", "correction"),
        ("Hay que ejecutar los tests antes de cada commit", "rule"),
        ("No, eso no es lo que pedí", "correction"),
        ("必ずテストを実行してください", "rule"),
        ("違う、pipではなくpoetry", "correction"),
        ("数据库一律使用Postgres", "rule"),
        ("不对，端口是5433", "correction"),
        ("為什麼這麼慢", "question"),
        ("Wo wird die Config geladen", "question"),
        ("커밋은 작게 나눠 주세요", "statement"),  # nothing is known of Korean
    ],
)
def test_kinds(text: str, kind: str) -> None:
    assert kind_of_user(text) == kind
    assert is_question(text) is (kind == "question")


@each(
    "text",
    [
        "Schau dir bitte das Projekt an und gib mir einen Überblick",
        "mach weiter",
        "Peux-tu regarder les logs du serveur de staging",
        "Sigue con lo que estabas haciendo en el parser",
        "プロジェクトを見て概要を教えてください",
        "帮我看一下这个项目的结构",
        "好，开始吧",
    ],
)
def test_requests_of_the_moment(text: str) -> None:
    assert is_passing(text)


@each(
    ("newer", "older", "replaces"),
    [
        ("Wir nutzen jetzt uv statt pip", "Pakete installieren wir mit pip", True),
        ("On utilise uv au lieu de pip", "Utilise pip pour installer", True),
        ("Ya no usamos pip, ahora uv", "Usamos pip para todo", True),
        ("pipではなくuvを使ってください", "pipでインストールする", True),
        ("用uv，不要再用pip了", "装包用pip", True),
        ("Nein, nicht pip, sondern poetry", "Nimm poetry, nicht pip", False),  # they say the same
        ("Commits immer klein halten", "Pakete installieren wir mit pip", False),
    ],
)
def test_what_takes_the_place_of_what(newer: str, older: str, replaces: bool) -> None:
    assert (relation(newer, older) == REPLACES) is replaces
    assert differs(newer, older) is replaces


def test_finished_lines() -> None:
    assert is_question("Wo wird die Config geladen") and is_question("配置是在哪里加载的")
    assert not is_question("Die Config liegt in src")
    assert supposes("Vielleicht nehmen wir Redis") and not supposes("Wir nehmen Redis")
    assert (
        orders("Immer den Schlüssel mitschicken") and orders("必须运行这个脚本") and not orders("Der Nutzer hat Tabs")
    )


def test_a_mark_of_redaction_is_no_word_of_a_language() -> None:
    said = [f"Der Schlüssel ist [redacted:password:{mark}] und gehört in den Tresor." for mark in ("fcdc0e", "e1f41a")]
    alone = ["Der Schlüssel ist  und gehört in den Tresor."] * 2
    assert language_of_speaker(said) == language_of_speaker(alone) == "de"
    assert language_of("[redacted:aws_secret_key:the_of_and] Danke, das passt so") == language_of("Danke, das passt so")
