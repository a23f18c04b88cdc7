"""What a person lays down in explicit words, and what only sounds like it."""

from memory_pipeline.text.explicit import answers_question, explicit_kind, statements
from memory_pipeline.text.lines import stands_alone
from memory_pipeline_tests.cases import each


@each(
    ("sentence", "kind"),
    [
        ("Never push to main directly", "rule"),
        ("no secrets in the logs please", "rule"),
        ("Every migration needs a way back.", "rule"),
        ("I'd rather have small commits", "preference"),
        ("use pnpm instead of npm", "preference"),
        ("we settled on Postgres for the events", "decision"),
        ("keep in mind that staging shares its Redis with dev", "rule"),
        ("Alle Preise werden ausschließlich in Cent gespeichert", "rule"),
        ("Lieber kleine Commits als große", "preference"),
        ("Ne pousse jamais directement sur main", "rule"),
        ("Hemos decidido usar Postgres para los eventos", "decision"),
        ("ログには必ずrequest_idを含めること", "rule"),
        ("提交信息一律用英文写", "rule"),
        ("From now on commit messages are written in English", "rule"),
        ("The frontend will be written in Svelte", "decision"),
        ("No mocks in here, can you rewrite it?", "rule"),
        ("Prefiero SQL puro, ¿puedes cambiarlo?", "preference"),
        ("branches start with the ticket from now on, ok?", "rule"),
        ("Whenever you add a column, I want a migration test next to it.", "rule"),
        ("I'd like you to start method names with 'a_'.", "rule"),
        ("Get into the habit of closing files with a context manager.", "rule"),
        ("Add the '@timed' decorator to all your functions.", "rule"),
        ("Wir haben die Konvention, dass asynchrone Funktionen auf _async enden.", "rule"),
        ("Chaque fois que tu ajoutes une colonne, je veux un test à côté.", "rule"),
        ("Es importante que las variables booleanas empiecen siempre por is_.", "rule"),
        ("非同期関数は _async で終わるという規約があります。", "rule"),
        ("我希望你每次说完成之前都先跑类型检查。", "rule"),
        ('"Always run the linter before you commit."', "rule"),
    ],
)
def test_what_lays_something_down(sentence: str, kind: str) -> None:
    assert explicit_kind(sentence) == kind


@each(
    "sentence",
    [
        "should we never push to main directly?",
        "the parser always returns None",
        "you always break the build",
        "maybe we should use Redis instead of Postgres",
        "this should never happen",
        "wait, let us talk first",
        "tidy up the parser when you have time",
        "no, the bug is in the parser",
        "I always forget how that works",
        'the linter says "do not use any as a type, prefer unknown"',
        "「入力は必須です。空にしないでください」が消えない",
        "if all requests had to go through the gateway, what would it cost?",
        "the function must return a list, but it returns None",
        "logs are written to /var/log",
        "new users get an empty page",
        "the config lives in etc",
        "the flag is forbidden in strict mode, apparently",
        "Bestellungen über 10.000 werden falsch gerundet",
        "les factures sont générées deux fois",
        "los datos viejos se guardan en una segunda tabla",
        "旧数据存在另一张表里",
        "der Job läuft immer zweimal an",
        "le parseur renvoie toujours une liste vide",
        "el scraper siempre devuelve la primera página",
        "パーサーが毎回nullを返してきます",
        "这个函数每次都返回第一个用户",
        "confirm that the client can be changed to use grpc instead of rest",
        "yes please add a fan and instead of the relay, rename the output",
        "已經設定好了，寄一封信試試",
        "維就行",
        "this means the hook can never be removed",
        "das führt dazu, dass der Wert immer null sein muss",
        "build: error: the following argument is required: cmd",
        "make sure the button is always visible on mobile",
        "For all endpoints, add rate limiting",
        "for every row I want a delete button",
        "list all files you create",
        "create a policy that allows read access to the bucket",
        "He told me that we never deploy on Fridays.",
        "für jede Zeile möchte ich einen Löschknopf",
        "dans ce projet on a un bug dans le login",
        "tenemos una regla de eslint que falla",
        "ファイル名が数字で始まるとエラーになります。",
        "确保按钮始终可见",
        "Don't write any code.",
        "just answer me, don't run anything",
        "ok, let's keep going",
        "Let's go with option 2",
        "Great, the plan is approved.",
        "copy the helper that we're using in the calendar",
        "remove whatever we're not using",
        "refresh any page that needs it",
        "show 50 rows per page by default",
        "uptime over the last month",
        "no clause matching in Orders.total/2",
        "As of now, each order is paid at once.",
        "In the future, I'd like to add sign-in.",
        "it has to stop at the new line ...",
        "Elimina el fondo por defecto que aparece en la imagen",
        "Me voy a comer.",
        "repo: https://example.com/notes/transcripts",
    ],
)
def test_what_lays_nothing_down(sentence: str) -> None:
    assert explicit_kind(sentence) is None


def said(text: str) -> list[str]:
    return [text[found.start : found.end] for found in statements(text)]


def test_a_statement_is_found_in_the_middle_of_other_talk() -> None:
    text = "the build is red again. we never mock the database here. can you have a look at the log?"
    assert said(text) == ["we never mock the database here."]


@each(
    ("rule", "task"),
    (
        ("Don't hardcode strings in the components.", "The header wraps on phones, can you fix it?"),
        ("Keine neuen Abhängigkeiten im Kern.", "Der Test für den Import schlägt seit heute früh fehl."),
        ("N'utilise pas moment.js dans le front.", "Le bouton de paiement est mal placé sur mobile, corrige ça."),
        ("No uses moment.js en el frontend.", "El botón de pago se ve mal en el móvil, arréglalo."),
    ),
)
def test_a_prohibition_within_a_request_restricts_the_request(rule: str, task: str) -> None:
    assert said(rule) == [rule]
    assert said(f"{task} {rule} {task}") == []


def test_a_prohibition_that_says_that_it_is_general_stays_one() -> None:
    task = "The header wraps on phones, can you fix it?"
    for rule in ("Never hardcode strings in the components.", "Don't add dependencies without asking me."):
        assert said(f"{task} {rule} {task}") == [rule]


def test_formatted_text_is_not_typed() -> None:
    rule = "We never mock the database."
    assert said(f"**Goal**: **faster** tests. {rule}") == [rule]
    assert said(f"**Goal**: **faster** tests. **Verify**: **lint** is clean. {rule}") == []


def test_chinese_is_typed_with_ascii_commas() -> None:
    assert said("我比较喜欢先看方案再动手,你先说说库存这块打算怎么弄") != []


def test_it_goes_on_with_what_qualifies_it() -> None:
    text = "We decided to strip tracking parameters. Except utm_content, which is kept. Run the tests now."
    assert said(text) == ["We decided to strip tracking parameters. Except utm_content, which is kept."]


def test_an_announced_amendment_goes_on_with_what_it_says() -> None:
    text = "An amendment to the policy we agreed on. The cap is 30 seconds."
    assert said(text) == [text]


def test_a_doubt_behind_a_statement_does_not_take_it_back() -> None:
    assert explicit_kind("we use uv here, never pip, I guess that broke the build") == "rule"
    assert explicit_kind("I guess we use uv here, never pip") is None


def test_a_pasted_prompt_lays_nothing_down() -> None:
    assert said("You must always answer in JSON. " * 100) == []
    assert said("You are an examiner for chemistry. Every question must have an answer. " * 4) == []
    assert said("You are a liar. Never push to main again.") == ["Never push to main again."]


def test_a_pasted_error_lays_nothing_down() -> None:
    error = '400 {"error": {"message": "ids were found. Each\n `tool_use` must have a `tool_result`."}, "id": "r1"}'
    assert said(f"this results in {error}\n\nAlways check the ids first.") == ["Always check the ids first."]


@each(
    ("question", "answer", "is_choice"),
    [
        ("Should the retry run in the web process or in the worker?", "in the worker", True),
        ("Which encoding do the exports have?", "utf-8 without bom", True),
        ("Should the retry run in the web process or in the worker?", "not sure yet", False),
        ("Should the retry run in the web process or in the worker?", "yes", False),
        ("Want me to commit this or run the tests first?", "run the tests", False),  # the next step
        ("I can store them as JSON, TOML or in SQLite. Which one?", "the second, people edit them", True),
        ("Should I squash the commits or keep them?", "Squash them, nobody reads them.", True),
        ("設定は 1) YAML 2) TOML のどちらにしますか？", "2番で", True),
        ("Lieber JSON oder YAML?", "YAML bitte", True),
        ("What format do you want for dates?", "ISO 8601 everywhere", True),
        ("How many rows are in the table?", "about 4000", False),
        ("Is the lock file there?", "it is in /var/run", False),
    ],
)
def test_an_answer_that_settles_how_things_are_to_be(question: str, answer: str, is_choice: bool) -> None:
    assert answers_question(question, answer) is is_choice


@each(
    ("text", "is_clear"),
    [
        ("Never push to main directly.", True),
        ("it must never be higher than that", False),
        ("Don't touch the rest.", False),
        ("see above, always like that", False),
        ("Alle Preise werden in Cent gespeichert.", True),
    ],
)
def test_a_statement_stands_alone_if_it_says_of_what(text: str, is_clear: bool) -> None:
    assert stands_alone(text) is is_clear
