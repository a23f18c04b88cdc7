"""Secrets that must reach no output: one of each kind, in a text that carries it as real transcripts do.

They are put together here from pieces, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import base64
import hashlib
import json
import string

from memory_pipeline_tests.redaction.surroundings import FOUND_BY_SURROUNDINGS, SEEN_LATER


def _random(length: int, alphabet: str = string.ascii_letters + string.digits, seed: str = "") -> str:
    digest = hashlib.shake_256(f"canary {seed} {length} {alphabet}".encode()).digest(length)
    made = "".join(alphabet[byte % len(alphabet)] for byte in digest)
    # a digit and two letters are in nearly every real secret of this length
    return made if not set(string.digits) <= set(alphabet) or length < 6 else f"{made[:-3]}q7x"[: length - 1] + made[0]


A20, A24, A36, A43, A60, A90 = (_random(length) for length in (20, 24, 36, 43, 60, 90))
H32, H40, H64 = (hashlib.sha512(str(n).encode()).hexdigest()[:n] for n in (32, 40, 64))
_BODY = base64.b64encode(hashlib.shake_256(b"key").digest(1200)).decode()
_LINES = "\n".join(_BODY[start : start + 64] for start in range(0, 1280, 64))


def _pem(label: str, end: bool = True) -> str:
    tail = f"\n-----END {label}PRIVATE KEY-----" if end else ""
    return f"-----BEGIN {label}PRIVATE " + f"KEY-----\n{_LINES}{tail}"


def _part(value: dict[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


JWT = f"{_part({'alg': 'HS256', 'typ': 'JWT'})}.{_part({'sub': '1234567890', 'name': 'Ada'})}.{A43}"
_UUID = "1b9d6bcd-bbfd-4b2d-9b5d-" + "ab8dfbbd4bed"

# The kind, the text before the secret, the secret, the text after it.
_PLANTED: tuple[tuple[str, str, str, str], ...] = (
    ("github-classic", "remote: use ", "ghp_" + A36, " to push"),
    ("github-fine-grained", "export GH=", "github_" + "pat_11ABCDEFG0" + A60, "\n"),
    ("github-app", "https://x-access-token:", "ghs_" + A36, "@github.com/ada/shop.git"),
    ("gitlab", '{"PRIVATE-TOKEN": "', "glpat-" + A20, '"}'),
    ("bitbucket", "curl https://x-token-auth:", "ATCTT3" + A60, "@bitbucket.org/ada/shop"),
    ("atlassian", "Jira says 401 for ", "ATATT3" + A90, "."),
    ("npm", "//registry.npmjs.org/:_authToken=", "npm_" + A36, "\n"),
    ("npmrc-login", "//npm.ada.dev/:_auth=", base64.b64encode(b"ada:hunter2hunter2").decode(), "\nregistry=x"),
    ("pypi", "password = ", "pypi-" + "AgEIcHlwaS5vcmc" + A43, "\n"),
    ("docker", "echo ", "dckr_" + "pat_" + A24 + "_-x", " | docker login"),
    ("docker-config", '{"auths": {"r.io": {"auth": "', base64.b64encode(b"ada:s3cretpw!").decode(), '"}}}'),
    ("aws-access-key-id", "aws_access_key_id = ", "AKIA" + "QYLPMN5HFI2WXCDE", "\n"),
    ("aws-secret", "aws_secret_access_key = ", A20 + "/+" + A20[::-1][:18], "\nregion = eu-west-1"),
    ("aws-session", "AWS_SESSION_TOKEN=", "IQoJb3JpZ2luX2Vj" + A90 + "/+8=", "\n"),
    ("google-api-key", "https://maps.googleapis.com/x?key=", "AIza" + "Sy" + _random(33), "&q=1"),
    ("google-oauth", '"client_secret":"', "GOCSPX-" + A24 + "_-a", '"'),
    ("google-service-account", '{"private_key": "', _pem("").replace("\n", "\\n"), '\\n", "client_id": "1"}'),
    ("azure-client-secret", "az login --service-principal -p ", "abc8Q" + "~" + A36, " --tenant t"),
    ("azure-storage", "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=", _BODY[:86] + "==", ";Suffix=x"),
    ("azure-sas", "https://shop.blob.core.windows.net/c?sv=2022-11-02&se=2026&sig=", A43 + "%3D", "&sp=r"),
    ("digitalocean", "doctl auth init -t ", "dop_" + "v1_" + H64, "\n"),
    ("heroku", "HEROKU_API_KEY=", _UUID, "\n"),
    ("cloudflare", "CLOUDFLARE_API_TOKEN: ", A20 + A20[::-1], "\n"),
    ("alibaba", "accessKeyId: ", "LTAI" + "5t" + A20[:18], "\n"),
    ("vault", "vault login ", "hvs." + "CAESI" + A90, "\n"),
    ("databricks", "host=https://x.cloud.databricks.com token=", "dapi" + H32, "\n"),
    ("doppler", "doppler run --token ", "dp." + "pt." + A43, " -- npm start"),
    ("terraform-cloud", 'credentials "app.terraform.io" { token = "', A20[:14] + ".atlasv1." + A60, '" }'),
    ("supabase", "SUPABASE_SECRET=", "sb_" + "secret_" + A24 + "_x8", "\n"),
    ("openai", "OPENAI_API_KEY=", "sk-" + "proj-" + A90, "\n"),
    ("openai-legacy", "openai.api_key = '", "sk-" + A20 + "T3Blbk" + "FJ" + A20, "'"),
    ("anthropic", "x-api-key: ", "sk-" + "ant-api03-" + A90 + "-_AA", "\n"),
    ("openrouter", "key is ", "sk-" + "or-v1-" + H64, " ok?"),
    ("groq", "groq: ", "gsk_" + A43 + A20[:9], ""),
    ("xai", "curl api.x.ai with ", "xai-" + A90, "\n"),
    ("huggingface", "huggingface-cli login --token ", "hf_" + A36, "\n"),
    ("replicate", "REPLICATE ", "r8_" + A36, "\n"),
    ("perplexity", "use `", "pplx-" + A43 + "`"[:0], "`"),
    ("mistral", "MISTRAL_API_KEY=", _random(32, seed="mistral"), "\n"),
    ("cohere", "environment:\n  COHERE_API_KEY: ", _random(40, seed="cohere"), "\n"),
    ("deepseek", "DEEPSEEK_API_KEY='", "sk-" + H32, "'"),
    ("slack-token", "SLACK=", "xoxb-" + "123456789012-1234567890123-" + A24, "\n"),
    ("slack-webhook", "https://hooks.slack.com/services/", "T0ABCDEF1/B0ABCDEF2/" + A24, " posts"),
    ("discord-token", "client.login('", "MTA4" + "NjQ5ODcxMzk4NzY1NDMy" + "MQ.GaBc12." + _random(38), "')"),
    ("discord-webhook", "https://discord.com/api/webhooks/1086498713987654321/", A60 + "_-abcdef", "\n"),
    ("telegram", "https://api.telegram.org/bot1234567890:", "AA" + _random(33, seed="telegram"), "/getMe"),
    ("stripe", "stripe.api_key=", "sk_" + "live_51" + A43, "\n"),
    ("stripe-webhook", "STRIPE_WEBHOOK: ", "whsec_" + A36, "\n"),
    ("twilio", "Client(sid, ", "SK" + H32, ")"),
    ("twilio-auth", "TWILIO_AUTH_TOKEN=", H32, "\n"),
    ("sendgrid", "SENDGRID ", "SG." + _random(22) + "." + A43, "\n"),
    ("mailgun", "curl -s --user 'api:", "key-" + H32, "' https://api.mailgun.net"),
    ("mailchimp", "mailchimp ", H32 + "-us" + "21", "\n"),
    ("square", "square ", "sq0atp-" + _random(22), "\n"),
    ("shopify", "X-Shopify-Access-Token: ", "shpat_" + H32, "\n"),
    ("linear", "linear ", "lin_" + "api_" + A43, "\n"),
    ("notion", "notion ", "ntn_" + A43 + "abc", "\n"),
    ("sentry", "sentry-cli --auth-token ", "sntryu_" + H64, " releases"),
    ("postman", "postman ", "PMAK-" + H64[:24] + "-" + H64[:34], "\n"),
    ("figma", "figma ", "figd_" + A43, "\n"),
    ("artifactory", "jfrog ", "AKCp" + A60 + A20[:9], "\n"),
    ("age", "# age\n", "AGE-SECRET-" + "KEY-1" + _random(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"), "\n"),
    ("jwt", "set-auth eyes on ", JWT, " now"),
    ("bearer", "curl -H 'Authorization: Bearer ", A36 + "-_~", "' x"),
    ("basic", '"Authorization": "Basic ', base64.b64encode(b"ada:hunter2hunter2").decode(), '"'),
    ("api-key-header", "-H 'X-Api-Key: ", A24, "'"),
    ("session-cookie", "Set-Cookie: theme=dark; sessionid=", A36, "; HttpOnly; Path=/"),
    ("cookie-header", "-H 'cookie: lang=de; connect.sid=s%3A", A36, "'"),
    ("rsa-key", "cat id_rsa\n", _pem("RSA "), "\n$"),
    ("openssh-key-cut", "     1→", _pem("OPENSSH ", end=False), ""),
    ("escaped-key", 'KEY="', _pem("EC ").replace("\n", "\\n"), '\\n"'),
    ("pgp-key", "gpg --export\n", _pem("PGP ").replace("KEY-----", "KEY BLOCK-----"), "\n"),
    ("putty-key", "", "PuTTY-User-" + f"Key-File-3: ssh-rsa\nPrivate-Lines: 20\n{_LINES}\nPrivate-MAC: {H64}", "\n"),
    ("postgres", "DATABASE_URL=postgres://ada:", "c0rrect-h0rse", "@db.ada.dev:5432/shop"),
    ("mysql", "mysql+pymysql://root:", "Tr0ub4dor&3", "@127.0.0.1/shop"),
    ("mongodb", "mongodb+srv://ada:", "m0ngoP4ss", "@cluster0.abcde.mongodb.net/"),
    ("redis", "redis://:", "r3disP4ssw0rd", "@cache:6379/0"),
    ("amqp", "amqps://ada:", "r4bbitP4ss", "@mq:5671"),
    ("mssql", "Server=db;User Id=sa;Password=", "Sup3rS3cret!", ";Encrypt=true"),
    ("jdbc", "jdbc:postgresql://db/shop?user=ada&password=", "jdbcP4ss99", "&ssl=true"),
    ("url-password", "git clone https://ada:", "hunter2pw", "@git.ada.dev/shop.git"),
    ("netrc", "machine api.ada.dev login ada password ", "n3trcP4ss", "\n"),
    ("pgpass", "db.ada.dev:5432:shop:ada:", "pgP4ssFile", "\n"),
    ("environment", "HOME=/home/ada\nSMTP_PASSWORD=", "hunter2", "\nSHELL=/bin/sh"),
    ("exported", "export APP_SECRET='", "abc/def+ghi", "'"),
    ("docker-run", "docker run -e API_TOKEN=", A20, " shop"),
    ("yaml", "db:\n  password: ", "hunter2hunter2", "\n  port: 1"),
    ("json", '{"apiKey": "', A24, '"}'),
    ("escaped-json", '{\\"client_secret\\": \\"', A24, '\\"}'),
    ("toml", 'auth_token = "', A24, '"'),
    ("kubernetes", "- name: DB_PASSWORD\n  value: ", "kub3P4ss", "\n"),
    ("xml", "<password>", "xmlP4ssw0rd", "</password>"),
    ("option", "shop login --password ", "hunter2", " --user ada"),
    ("mysql-option", "mysqldump -u root -p'", "r00tP4ss", "' shop"),
    ("curl-user", "curl -sS -u ada:", "hunter2", " https://ada.dev"),
    ("redis-cli", "redis-cli -h cache -a ", "r3disP4ss", " ping"),
    ("private-tag", "<private>", "my salary is 12", "</private>"),
)

# kind: (a text in which it is planted, the secret that must vanish)
CANARIES: dict[str, tuple[str, str]] = {
    kind: (before + secret + after, secret)
    for kind, before, secret, after in (*_PLANTED, *FOUND_BY_SURROUNDINGS, *SEEN_LATER)
}
