"""Secrets with a format of their own, recognised without context."""

from __future__ import annotations

import re

from memory_pipeline.redaction.detectors import Detector
from memory_pipeline.text.regex import deferred

# Not within a longer word; `\n` in escaped text is no letter.
_START = r"(?:(?<![A-Za-z0-9_/+-])|(?<=\\[nrt]))"
_END = r"(?![A-Za-z0-9_/+])"
# A line break within base64, which may be escaped, quoted in a diff, or numbered by the tool that read the file.
_BREAK = r"(?:(?:\\+[rn]|[ \t\r\n])+(?:\d{1,6}[→:|\t][ \t]*|[+>|-][ \t]?)?)"
_HEADER = r"(?:[A-Z][A-Za-z-]{3,20}: (?:(?!\\+n)[^\n]){0,100})"
_PEM = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----(?:"
    r"(?=(?:(?!-----(?:BEGIN|END))[\s\S]){0,400}?[A-Za-z0-9+/=]{40})(?:(?!-----BEGIN)[\s\S]){0,20000}?"
    r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----"
    rf"|(?:{_BREAK}{_HEADER})*(?:{_BREAK}[A-Za-z0-9+/=]{{16,}}+)+)"
)
_PUTTY = (
    r"PuTTY-User-Key-File-\d:(?:(?!PuTTY-User-Key-File)[\s\S]){0,20000}?"
    r"Private-Lines:[^A-Za-z]{0,20}(?:(?!Private-)(?:\\+[rn]|[A-Za-z0-9+/=\s]))+(?:Private-MAC: ?[0-9a-f]{16,})?"
)


def _has_digit(secret: str) -> bool:
    return any(map(str.isdigit, secret))


def _token(kind: str, body: str, *literals: str, start: str = "", back: int = 0) -> Detector:
    pattern = f"{start}(?:{'|'.join(map(re.escape, literals))}){body}" if not back else body
    return Detector(kind, literals, deferred(pattern), back)


TOKENS: tuple[Detector, ...] = (
    # the beginning of a service account file in base64
    _token(
        "private-key",
        r"[A-Za-z0-9+/]{40,}={0,2}",
        *("ewogICJ0eXBlIjogInNlcnZpY2Vf", "eyJ0eXBlIjoic2VydmljZV9h", "eyJ0eXBlIjogInNlcnZpY2Vf"),
    ),
    Detector("private-key", ("-----BEGIN ",), deferred(_PEM)),
    Detector("private-key", ("PuTTY-User-Key-File-",), deferred(_PUTTY)),
    _token("private-key", r"(?:PQ-)?1[0-9A-Z]{40,}", "AGE-SECRET-KEY-"),
    Detector(
        "jwt",
        ("eyJ",),
        deferred(
            r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))eyJ[A-Za-z0-9_-]{8,}\.(?:eyJ[A-Za-z0-9_-]{8,}|(?:[A-Za-z0-9_-]*\.){2,3})"
            r"(?:\.?[A-Za-z0-9_-]+)?"
            # wrapped by a terminal or mail program
            r"(?:\.?(?:\r?\n[ \t]{0,8}(?=[A-Za-z0-9._-]{0,40}\d)\.?[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]{10,})?){1,4})?"
        ),
    ),
    # password hashes in user files and databases
    Detector(
        "password-hash",
        ("$2a$", "$2b$", "$2y$", "$apr1$", "$1$", "$5$", "$6$", "$y$", "$argon2", "$scrypt$", "$pbkdf2"),
        deferred(r"\$(?:2[aby]|apr1|[156y]|argon2(?:id?|d)|scrypt|pbkdf2[\w-]*)\$[\w./,=$+-]{20,}"),
    ),
    Detector("password-hash", ("pbkdf2_sha", "argon2$"), deferred(r"(?:pbkdf2_sha\d+\$\d+|argon2)\$[\w./,=$+-]{20,}")),
    Detector("password-hash", ("{SSHA", "{SHA"), deferred(r"\{S?SHA\d{0,3}\}(?P<secret>[A-Za-z0-9+/]{20,}={0,2})")),
    # code hosts and registries
    # `_highs_to_…` is a name in code
    Detector(
        "github-token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        deferred(r"(?:(?<![A-Za-z])|(?<=\\[nrt]))(?:gh[pousr]_|github_pat_)(?=[A-Za-z_]{0,60}\d)[A-Za-z0-9_]{20,}"),
    ),
    _token(
        "gitlab-token",
        r"[A-Za-z0-9_.-]{16,}",
        *("glpat-", "gldt-", "glft-", "glsoat-", "glrt-", "glcbt-", "glimt-", "glptt-", "glagent-", "gloas-"),
    ),
    _token("gitlab-token", r"[A-Za-z0-9_-]{20,}", "GR1348941"),
    _token("atlassian-token", r"[A-Za-z0-9_=-]{40,}", "ATATT3", "ATCTT3"),
    _token("atlassian-token", r"[A-Za-z0-9]{24,}", "ATBB", start=_START),
    _token("npm-token", r"[A-Za-z0-9]{30,}", "npm_"),
    _token("pypi-token", r"[A-Za-z0-9_-]{30,}", "pypi-"),
    _token("rubygems-token", r"[0-9a-f]{40,}", "rubygems_"),
    _token("docker-token", r"[A-Za-z0-9_-]{20,}", "dckr_pat_", "dckr_oat_"),
    _token("circleci-token", r"[A-Za-z0-9]{10,}_[0-9a-f]{40}", "CCIPAT_"),
    # clouds and infrastructure
    _token("aws-access-key-id", r"[A-Z0-9]{16}(?![A-Za-z0-9])", "AKIA", "ASIA", "ABIA", "ACCA", start=_START),
    _token("aws-bedrock-key", r"[A-Za-z0-9+/=]{100,}", "ABSK", start=_START),
    _token("google-key", r"[A-Za-z0-9_-]{30,}", "AIza", start=_START),
    _token("google-key", r"[A-Za-z0-9_-]{20,}", "GOCSPX-"),
    _token("google-key", r"[A-Za-z0-9_.-]{20,}", "ya29.", start=_START),
    _token("azure-secret", r"(?<![\w.~-])[\w.~-]{3}8Q~[\w.~-]{30,}", "8Q~", back=3),
    Detector(
        "azure-sas", ("&sig=", "?sig=", ";sig=", "6sig="), deferred(r"[?&;6]sig=(?P<secret>[A-Za-z0-9%+/=_-]{20,})")
    ),
    _token("digitalocean-token", r"[0-9a-f]{40,}", "dop_v1_", "doo_v1_", "dor_v1_"),
    _token("heroku-key", r"[A-Za-z0-9_-]{50,}", "HRKU-AA"),
    _token("cloudflare-token", r"[A-Za-z0-9_-]{36,}", "cfut_", "cfat_", "cfk_", start=_START),
    _token("cloudflare-token", r"[0-9a-f]{24}-[0-9a-f]{100,}", "v1.0-"),
    _token("alibaba-key", r"[A-Za-z0-9]{12,26}" + _END, "LTAI", start=_START),
    _token("tencent-key", r"[A-Za-z0-9]{32}" + _END, "AKID", start=_START),
    _token("vault-token", r"[A-Za-z0-9_-]{20,}", "hvs.", "hvb.", "hvr.", start=_START),
    _token("terraform-token", r"(?<![\w.])\w{14}\.atlasv1\.[A-Za-z0-9_=-]{50,}", ".atlasv1.", back=14),
    _token("databricks-token", r"[0-9a-f]{32}(?:-\d)?(?![0-9a-f])", "dapi", start=_START),
    _token("doppler-token", r"[A-Za-z0-9._-]{30,}", *(f"dp.{kind}." for kind in ("pt", "st", "ct", "sa", "scim"))),
    _token("planetscale-token", r"[A-Za-z0-9_.=-]{30,}", "pscale_tkn_", "pscale_pw_", "pscale_oauth_"),
    _token("supabase-key", r"[A-Za-z0-9_-]{20,}", "sb_secret_"),
    _token("supabase-key", r"[0-9a-f]{40}", "sbp_", start=_START),
    _token("pulumi-token", r"[0-9a-f]{40}", "pul-", start=_START),
    _token("tailscale-key", r"[a-z]+-[A-Za-z0-9-]{16,}", "tskey-"),
    _token("grafana-token", r"[A-Za-z0-9_+/=]{30,}", "glsa_", "glc_"),
    _token("newrelic-key", r"[A-Z0-9]{27}", "NRAK-"),
    _token("sentry-token", r"[A-Za-z0-9_+/=]{30,}", "sntrys_", "sntryu_"),
    # providers of models
    _token("anthropic-key", r"[A-Za-z0-9_-]{16,}", "sk-ant-"),
    _token("openrouter-key", r"[A-Za-z0-9_-]{16,}", "sk-or-"),
    _token("openai-key", r"[A-Za-z0-9_-]{16,}", "sk-proj-", "sk-svcacct-", "sk-admin-"),
    # names of CSS classes also begin with sk-, so a digit must follow soon
    _token("openai-key", r"(?=[A-Za-z_]{0,60}\d)[A-Za-z0-9_]{20,}", "sk-", start=_START),
    _token("groq-key", r"[A-Za-z0-9]{40,}", "gsk_"),
    _token("xai-key", r"[A-Za-z0-9]{40,}", "xai-", start=_START),
    _token("huggingface-token", r"[A-Za-z0-9]{30,}", "hf_", "api_org_", start=_START),
    _token("replicate-token", r"[A-Za-z0-9]{30,}", "r8_", start=_START),
    _token("perplexity-key", r"[A-Za-z0-9]{30,}", "pplx-"),
    _token("nvidia-key", r"[A-Za-z0-9_-]{50,}", "nvapi-"),
    _token("tavily-key", r"(?:dev-|prod-)?[A-Za-z0-9]{20,}", "tvly-"),
    _token("langsmith-key", r"[0-9a-f]{32}_[0-9a-f]{8,}", "lsv2_pt_", "lsv2_sk_"),
    # money, mail, messages and other services
    _token("stripe-key", r"[A-Za-z0-9]{10,}", "sk_live_", "sk_test_", "rk_live_", "rk_test_"),
    _token("stripe-key", r"[A-Za-z0-9+/=]{16,}", "whsec_"),
    _token("square-token", r"[A-Za-z0-9_-]{22,}", "sq0atp-", "sq0csp-"),
    _token("square-token", r"[A-Za-z0-9_-]{60}(?![A-Za-z0-9_/+=-])", "EAAA", start=_START),
    _token("shopify-token", r"[0-9a-fA-F]{32}", "shpat_", "shpca_", "shppa_", "shpss_"),
    _token("sendgrid-key", r"[A-Za-z0-9_-]{16,40}\.[A-Za-z0-9_-]{30,}", "SG.", start=_START),
    _token("mailgun-key", r"[0-9a-f]{32}" + _END, "key-", start=_START),
    _token("brevo-key", r"[0-9a-f]{64}-[A-Za-z0-9]{10,}", "xkeysib-"),
    _token("slack-token", r"[a-z]-[A-Za-z0-9-]{10,}", "xox", start=_START),
    _token("slack-token", r"\d-[A-Za-z0-9-]{10,}", "xapp-", start=_START),
    Detector(
        "twilio-key", ("AC", "SK"), deferred(r"(?:AC|SK)[a-z0-9]{32}[\w-]{0,64}"), hints=("(?:AC|SK)[a-z0-9]{32}",)
    ),
    # the first part of a bot token is a number in base64
    Detector(
        "discord-token",
        ("MT", "MD", "Mj", "Mz", "NT", "ND", "Nj", "Nz", "OT", "OD"),
        deferred(r"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,90}"),
        hints=(r"[MNO][DTjz][A-Za-z0-9_-]{22,24}\.[A-Za-z0-9_-]{6}\.",),
    ),
    Detector("mailchimp-key", ("-us",), deferred(r"[0-9a-z]{32}-us\d{1,2}"), back=32, hints=("-us[0-9]",)),
    Detector("slack-webhook", ("hooks.slack.com/",), deferred(r"hooks.slack.com/\w+/(?P<secret>[A-Za-z0-9/]{20,})")),
    Detector("discord-webhook", ("/api/webhooks/",), deferred(r"/api/webhooks/\d+/(?P<secret>[A-Za-z0-9_-]{40,})")),
    Detector("telegram-token", (":AA",), deferred(r"(?<=\d{8}):(?P<secret>AA[A-Za-z0-9_-]{31,40})(?![A-Za-z0-9_-])")),
    _token("linear-key", r"[A-Za-z0-9]{30,}", "lin_api_", "lin_oauth_"),
    _token("notion-token", r"[A-Za-z0-9]{40,}", "ntn_", start=_START),
    Detector("notion-token", ("secret_",), deferred(_START + r"secret_[A-Za-z0-9]{43}" + _END), accepts=_has_digit),
    _token("postman-key", r"[0-9a-f]{20,}-[0-9a-f]{30,}", "PMAK-"),
    _token("figma-token", r"[A-Za-z0-9_-]{30,}", "figd_", "figo_", "figu_", start=_START),
    _token("artifactory-key", r"[A-Za-z0-9]{60,}", "AKCp", start=_START),
    _token("1password-token", r"eyJ[A-Za-z0-9_=-]{50,}", "ops_"),
)
