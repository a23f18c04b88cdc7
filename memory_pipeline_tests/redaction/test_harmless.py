"""What looks like a secret and must stay."""

from __future__ import annotations

import base64
import hashlib

from memory_pipeline.redaction import Redactor
from memory_pipeline_tests.cases import each

REDACTOR = Redactor(b"salt")
SHA1 = "5b6199e63f81743b2d63b3f795ce56a709d8da3c"
SHA256 = SHA1 + "0123456789abcdef01234567"
UUID = "019985ca-7ef7-7580-a921-c20ac619f40b"
IMAGE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 400).decode()

HARMLESS = [
    # hashes and identifiers
    f"commit {SHA1}",
    f"key {SHA1}",
    f"cache key: {SHA1}",
    f"cacheKey: '{SHA1}', tokenHash={SHA256}",
    f"token: {SHA1}",
    f'"page_token": "{UUID}"',
    UUID,
    f"session_id={UUID}",
    f"sha256:{SHA256}",
    f"{SHA256}  dist/app.tar.gz",
    '"integrity": "sha512-' + IMAGE[:86] + '=="',
    f"tree {SHA1}\nparent {SHA1}",
    "Message-ID: <CAF4" + "x7Tk9Zq@mail.gmail.com>",
    "toolu_01A09q90qw90lq917835lq9",
    "call_5bX8kq2Zt1mN7pR4vW0yL3aS",
    f"data:image/png;base64,{IMAGE}",
    IMAGE,
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7x8Kq2Zt1mN7pR4vW0yL3aS ada@shop",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2x8Kq2Zt1mN7pR4vW0yL3aSx8Kq2Zt1mN7pR",
    "-----BEGIN PUBLIC KEY-----\n" + IMAGE[:64] + "\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\n" + IMAGE[:64] + "\n-----END CERTIFICATE-----",
    "grep -r 'BEGIN PRIVATE KEY' .",
    'if "-----BEGIN PRIVATE KEY-----" in text and "-----END PRIVATE KEY-----" in text:',
    # paths, URLs and addresses
    "/home/ada/keys/token-store/secret_key.py:42",
    "C:\\Users\\ada\\tokens.json",
    "https://github.com/ada/shop/issues/1",
    "git@github.com:ada/shop.git",
    "http://localhost:3000/@vite/client",
    "https://registry.npmjs.org/@types/node",
    "SECRET_FILE=/run/secrets/db",
    "SSH_PRIVATE_KEY=/home/ada/.ssh/id_ed25519",
    "PWD=/home/ada/shop",
    # references
    "PASSWORD=$DB_PASSWORD",
    "PASSWORD=${DB_PASSWORD}",
    "password: ${{ secrets.DB_PASSWORD }}",
    "postgres://$USER:$PASSWORD@db/shop",
    "postgres://user:password@localhost/shop",
    "curl -u $USER:$TOKEN https://ada.dev",
    "curl -H 'Authorization: Bearer $TOKEN' x",
    "Authorization: Bearer <token>",
    "token = os.environ['GITHUB_TOKEN']",
    "api_key = process.env.API_KEY",
    "token = get_token(request)",
    "const token = await fetchToken2(user)",
    "token: request.headers.get('x')",
    "password = self.password1",
    "secret=config.secret2",
    '"apiKey": "OPENAI_API_KEY"',
    "login(password=password1)",
    # placeholders and words
    "SECRET=xxxxxxxxxxxx",
    "SECRET=********",
    "SECRET=<your-secret-here>",
    "API_KEY=REDACTED",
    "API_KEY=your_api_key_here",
    "api_key: 'example-key'",
    'password: "required"',
    "password: string;",
    'type="password" name="password" autocomplete="current-password"',
    '"token_type": "bearer"',
    '"secret": "my-secret-name"',
    "PASSWORD=short",
    "the bearer of this letter",
    "bearer authentication is required",
    "the password is stored in the vault",
    "--password prompts for it",
    # counts and parsers
    "max_tokens=200000000, total_tokens: 123456789",
    "next_token='abcd1234efgh'",
    "eos_token = '<|endoftext|>'",
    "MAX_TOKEN=200000000",
    "token: 12345678",
    # names
    ".sk-estimator-doc-link { color: red }",
    "sk-toggleable__label-arrow",
    "task-1234567890abcdefghijkl",
    "monkey: business-as-usual1",
    "keyboard = 'qwertz-layout-1'",
    "hf_hub_download and npm_config_registry and shop_pat_",
    "mkdir -p src/components && cp -a build/output dist/output",
    "bypass=hunter2hunter2x",
    "cookie: 'set by the server', Cookie: theme=dark",
    # what was redacted before
    "[redacted:github-token:3fa91c]",
    "password=[redacted:password:3fa91c]",
    "postgres://ada:[redacted:password:3fa91c]@db/shop",
    '"token": "[redacted:token:3fa91c]"',
    "Cookie: sid=[redacted:cookie:3fa91c]; theme=dark",
    "<private>[private]</private>",
    "an opening <private> with no end",
]


@each("text", HARMLESS, ids=range(len(HARMLESS)))
def test_it_stays_and_is_the_same_object(text: str) -> None:
    assert REDACTOR.redact(text) is text
    assert REDACTOR.excerpt(text, len(text)) is text


def test_megabytes_of_random_data_hold_no_secret() -> None:
    data = hashlib.shake_256(b"noise").digest(1_000_000)
    for text in (base64.b64encode(data).decode(), base64.encodebytes(data).decode(), data[:500_000].hex()):
        assert REDACTOR.redact(text) is text
