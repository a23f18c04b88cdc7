"""A secret of each kind, in every voice of a session, is gone from all that is read; what is said about one stays."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from memory_pipeline.proposals.score import SECRET, why_left_out
from memory_pipeline.sessions.redaction import Redactor
from memory_pipeline.sessions.redaction.spoken import names_password
from memory_pipeline_tests.sessions.harnesses import test_claude_code as claude
from memory_pipeline_tests.sessions.redaction.canaries import _BODY, A36, A43, CANARIES, JWT, _pem

_ACCOUNT = b'{\n  "type": "service_account",\n  "project_id": "shop",\n  "private_key_id": "0a1b2c3d4e5f"\n}'
_WRAPPED = JWT.rsplit(".", 1)

# The text before the secret, the secret, the text after it.
SAID: tuple[tuple[str, str, str], ...] = (
    ("my gpg passphrase is ", "correct horse battery staple", ""),
    ("our wifi password is ", "sunny blue sky", ", tell nobody"),
    ("log in with user ada and password ", "Tr0ub4dor", " please"),
    ("the password is ", "hunter2", "."),
    ('the sudo password is "', "let me in", '"'),
    ("the password for staging is ", "W1nter-Sun", ""),
    ("das Passwort für die Datenbank ist ", "Sommer2026", "!"),
    ("Das Kennwort lautet „", "blaue Kuh im Wald", "“."),
    ("mein Passwort ist ", "gelbes Haus", ""),
    ("le mot de passe est ", "soleil42x", ""),
    ("le mot de passe : « ", "soleil bleu", " »"),
    ("la contraseña es '", "luna llena azul", "'"),
    ("mi contraseña es ", "luna-llena9", ""),
    ("a senha é ", "verao2026x", ""),
    ("密码：", "hunter2x", ""),
    ("数据库密码是 ", "Xk29dkq", "，别忘了"),
    ("数据库密码是", "Xk29dkq", "。"),
    ("パスワードは ", "abc123xy", " です"),
    ("パスワードは「", "青い空と海", "」です"),
    ("client-key-data: ", base64.b64encode(_pem("RSA ").encode()).decode(), "\n"),
    ("echo ", base64.b64encode(_ACCOUNT).decode(), " | base64 -d > account.json"),
    (f"{_WRAPPED[0]}.\n  ", _WRAPPED[1], "\n"),
    ("curl -b 'auth=", A36, "' https://ada.dev"),
    ("PHPSESSID=", "a1b2c3d4e5f6a7b8c9d0e1f2g3", ""),
    (".ada.dev\tTRUE\t/\tTRUE\t0\tJSESSIONID\t", "A1B2C3D4E5F6A7B8C9D0E1F2", "\n"),
    ("define('DB_PASSWORD', '", "s3cret wp!", "');"),
    ('<add key="DbPassword" value="', "s3cretXml", '" />'),
    ("AWS Secret Access Key [None]: ", _BODY[:40].replace("+", "a"), "\n"),
    ("Authorization: key=", "AAAA" + A43, "\n"),
    ("echo ", "hunter2hunter2", " | docker login -u ada --password-stdin"),
    ("network={\n  psk=", "sunnyblue9", "\n}"),
    ("password: >-\n  ", "f0lded-s3cret", "\nuser: ada"),
)
ALL = {**CANARIES, **{f"said-{n}": (before + it + after, it) for n, (before, it, after) in enumerate(SAID)}}


@pytest.mark.parametrize("kind", ALL)
def test_it_is_gone_whoever_says_it(kind: str, tmp_path: Path) -> None:
    text, secret = ALL[kind]
    # what begins with a tag is not taken for the user's words
    text = f"See:\n{text}"
    session = claude.parse(
        tmp_path,
        claude.record(1, "user", text),
        claude.record(2, "assistant", [{"type": "text", "text": text}]),
        claude.record(3, "assistant", [claude.use("Bash", command=text)]),
        claude.record(4, "user", [claude.result(text)]),
    )
    assert [message.role for message in session.messages] == ["user", "assistant", "tool", "tool"]
    for message in session.messages:
        assert secret not in message.text
    assert secret not in session.name


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind.startswith("said-")])
def test_it_is_never_offered(kind: str) -> None:
    text, _ = ALL[kind]
    assert why_left_out(Redactor(b"salt").redact(text), []) == SECRET


STAYS = [
    "the password is stored in the vault",
    "the password must be 8 characters",
    "my password is in 1Password",
    "das Passwort ist falsch",
    "密码是必填的",
    "# 有密码：尝试在2次内登录",
    "input=/etc/passwd generated_agent=a1B2c3D4",
    "la clave es: no usar ORMs",
    "the password hash sha256 is used",
    "the password is validated with bcrypt2",
    "user password reset v2",
    "set password policy2",
    'log("passwd "generating random ID2")',
    "result = _highs_to_scipy_status_message2(solver)",
    "--- PASS: TestUser/a1b2c3d4e5f6 (0.00s)",
]


@pytest.mark.parametrize("text", STAYS)
def test_what_is_said_about_one_stays(text: str) -> None:
    assert Redactor(b"salt").redact(text) is text
    assert not names_password(text)
