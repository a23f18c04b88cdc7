"""Secrets that must not be stored, and what looks like one and must stay."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from memory_pipeline.sessions.reading import parse_file
from memory_pipeline.sessions.redaction import excerpt, redact

# Put together here, so that no scanner takes this file for a leak.
A36 = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
PEM = "-----BEGIN {0}PRIVATE KEY-----\n" + "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" * 2] * 4)

SECRETS = [
    ("github-token", "ghp_" + A36),
    ("github-token", "github_" + "pat_11ABCDEFG0" + A36),
    ("gitlab-token", "glpat-" + "x1Y2z3A4b5C6d7E8f9G0"),
    ("slack-token", "xoxb-" + "123456789012-123456789012-abcdefABCDEF"),
    ("stripe-key", "sk_live_" + "51AbCdEfGhIjKlMnOp"),
    ("google-key", "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"),
    ("npm-token", "npm_" + A36),
    ("pypi-token", "pypi-" + "AgEIcHlwaS5vcmc" + A36),
    ("openai-key", "sk-" + "proj-" + A36),
    ("openai-key", "sk-" + A36),
    ("anthropic-key", "sk-" + "ant-api03-" + A36 + "-_x"),
    ("aws-access-key-id", "AKIA" + "IOSFODNN7EXAMPLE"),
    ("jwt", "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"),
    ("private-key", PEM.format("RSA ") + "\n-----END RSA PRIVATE KEY-----"),
    ("private-key", PEM.format("")),
    ("private-key", PEM.format("OPENSSH ").replace("\n", "\\n") + "\\n-----END OPENSSH PRIVATE KEY-----"),
]


@pytest.mark.parametrize(
    ("kind", "secret"), SECRETS, ids=[f"{kind}-{number}" for number, (kind, _) in enumerate(SECRETS)]
)
def test_known_formats(kind: str, secret: str) -> None:
    assert redact(f"before {secret} after") == f"before [redacted:{kind}] after"
    assert redact(f'{{"a": "{secret}"}}') == f'{{"a": "[redacted:{kind}]"}}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgres://ada:hunter2pw@db:5432/x", "postgres://ada:[redacted:password]@db:5432/x"),
        ("Authorization: Bearer abc123def456ghi789", "Authorization: Bearer [redacted:bearer-token]"),
        ("-H 'authorization: bearer abc123def456ghi789'", "-H 'authorization: bearer [redacted:bearer-token]'"),
        ("DB_PASSWORD=correcthorse\nX=1", "DB_PASSWORD=[redacted:password]\nX=1"),
        ("export GITHUB_TOKEN=abcd1234efgh", "export GITHUB_TOKEN=[redacted:token]"),
        ("STRIPE_SECRET_KEY='abc/def+ghi'", "STRIPE_SECRET_KEY='[redacted:secret]'"),
        ('api_key = "abcdefgh1234"', 'api_key = "[redacted:api-key]"'),
        ('{"apiKey": "abcdefgh1234"}', '{"apiKey": "[redacted:api-key]"}'),
        ('{\\"password\\": \\"abcdefgh1234\\"}', '{\\"password\\": \\"[redacted:password]\\"}'),
        ("password: hunter2hunter2", "password: [redacted:password]"),
        (
            "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "aws_secret_access_key = [redacted:secret]",
        ),
        ("İ TOKEN=abcd1234efgh", "İ TOKEN=[redacted:token]"),
        ("a <private>my salary</private> b", "a <private>[private]</private> b"),
    ],
)
def test_secrets_in_context(text: str, expected: str) -> None:
    assert redact(text) == expected
    assert redact(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "commit 5b6199e63f81743b2d63b3f795ce56a709d8da3c",
        "019985ca-7ef7-7580-a921-c20ac619f40b",
        "/home/ada/keys/token-store/secret_key.py:42",
        "C:\\Users\\ada\\tokens.json",
        "PASSWORD=$DB_PASSWORD",
        "PASSWORD=${DB_PASSWORD}",
        "token = os.environ['GITHUB_TOKEN']",
        "api_key = process.env.API_KEY",
        "SECRET=xxxxxxxxxxxx",
        "SECRET=********",
        "SECRET=<your-secret-here>",
        "API_KEY=REDACTED",
        "API_KEY=your_api_key_here",
        '"apiKey": "OPENAI_API_KEY"',
        'password: "required"',
        "password: string;",
        "token = get_token(request)",
        "const token = await fetchToken2(user)",
        "token: request.headers.get('x')",
        "max_tokens=200000000, total_tokens: 123456789",
        "SECRET_FILE=/run/secrets/db",
        "SSH_PRIVATE_KEY=/home/ada/.ssh/id_ed25519",
        "PASSWORD=short",
        "https://github.com/ada/shop/issues/1",
        "git@github.com:ada/shop.git",
        "the bearer of this letter",
        ".sk-estimator-doc-link { color: red }",
        "sk-toggleable__label-arrow",
        "monkey: business-as-usual1",
        "keyboard = 'qwertz-layout-1'",
    ],
)
def test_what_must_stay(text: str) -> None:
    assert redact(text) == text


def test_long_texts_are_quick() -> None:
    pieces = (
        "a",
        "token = ",
        "password",
        "://a:",
        "eyJ",
        "sk-",
        "-----BEGIN PRIVATE KEY-----\n",
        "bearer 1",
        "<private>",
    )
    for text in (piece * (500_000 // len(piece)) for piece in pieces):
        started = time.perf_counter()
        redact(text)
        assert time.perf_counter() - started < 2, text[:20]


def test_an_excerpt_has_head_and_tail_and_says_how_much_is_gone() -> None:
    text = "a" * 5000 + "b" * 5000
    short = excerpt(text, 300)
    assert len(short) == 300
    assert short.startswith("aaa") and short.endswith("bbb")
    assert "[… 9,700 characters left out …]" in short
    assert excerpt("short", 300) == "short"


@pytest.mark.parametrize("length", [300, 4000])
def test_an_excerpt_has_no_half_of_a_token(length: int) -> None:
    token = "ghp_" + A36
    for offset in range(100, length, 7):
        short = excerpt("x" * offset + " " + token + " " + "y " * (length // 2), 300)
        assert "ghp_" not in short and A36[-8:] not in short


def test_an_excerpt_has_no_half_of_a_token_where_long_ones_before_it_became_short() -> None:
    jwt = "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + A36 * 30
    token = "ghp_" + A36
    for offset in range(120):
        short = excerpt(f"{jwt} " + "x" * offset + f" {token} " + "y " * 5000, 300)
        assert "ghp_" not in short


def test_an_excerpt_of_what_is_short_once_redacted_is_the_whole() -> None:
    assert excerpt(f"before {PEM.format('')} after", 100) == "before [redacted:private-key] after"


def test_a_title_has_no_half_of_a_token(tmp_path: Path) -> None:
    prompt = "x" * 50 + " ghp_" + A36
    message = {"type": "message", "id": "1", "timestamp": "2026-05-01T12:00:00Z"}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(message | {"message": {"role": "user", "content": prompt}}))
    assert parse_file(path).name == "x" * 50 + " [redacted:github-token]"


def test_nothing_leaves_parse_file_unredacted(tmp_path: Path) -> None:
    secret = "ghp_" + A36
    stamp = "2026-05-01T12:00:00Z"
    call = {"type": "toolCall", "id": "t", "name": "write", "arguments": {"path": f"/x/{secret}", "content": secret}}
    unknown_call = {"type": "toolCall", "id": "u", "name": secret, "arguments": {"note": "x " * 800 + secret}}
    records = [
        {"type": "session", "version": 3, "id": "s", "timestamp": stamp, "cwd": f"/home/{secret}"},
        {"type": "session_info", "id": "1", "timestamp": stamp, "name": f"with {secret}"},
        {"type": "message", "id": "2", "timestamp": stamp, "message": {"role": "user", "content": f"use {secret}"}},
        {
            "type": "message",
            "id": "3",
            "timestamp": stamp,
            "message": {"role": "assistant", "content": [call, unknown_call]},
        },
        {"type": secret},
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, records)) + "\n" + f'{{"broken {secret}')
    session = parse_file(path)
    assert secret not in repr(session)
    assert session.messages[0].text == "use [redacted:github-token]"
    assert session.files_modified == ("/x/[redacted:github-token]",)
