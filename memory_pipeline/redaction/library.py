"""The detectors of the library `detect_secrets`, as its fork bc-detect-secrets has them.

Yelp's original has had no release since May 2024 and questions about it stay unanswered; the fork, of the authors of
Checkov, is typed and had its last release in September 2026. CredSweeper knows more formats and is kept as well, but
brings 44 packages (408 MB, onnxruntime and pandas among them) and announces the end of its way to scan a text.

Only the patterns are used: the library's scan reads line by line at 1 MB/s, and may ask the service in question whether
a secret is valid. Left out are the detectors that take more than linear time on hostile text (Artifactory, JwtToken),
that know a key only by 88 characters of base64 (AzureStorageKey), or that go by entropy and by bare names, which had
3,000 distinct false alarms in the 19 MB of real sessions that `benchmarks/redaction.py` reads, and those (BasicAuth,
PrivateKey) that find less than this package's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.base import RegexBasedDetector
from detect_secrets.plugins.cloudant import CloudantDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.ibm_cloud_iam import IbmCloudIamDetector
from detect_secrets.plugins.ibm_cos_hmac import IbmCosHmacDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.npm import NpmDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.softlayer import SoftlayerDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector

from memory_pipeline.redaction.detectors import Span

# Some patterns have a fixed length, and newer tokens are longer.
_REST = re.compile("[A-Za-z0-9_-]{0,64}")


@dataclass(frozen=True)
class LibraryDetector:
    """A detector of the library, run on a text in which one of the `literals` stands."""

    kind: str
    literals: tuple[str, ...]
    patterns: tuple[re.Pattern[str], ...]
    hints: tuple[str, ...] = ()

    @property
    def triggers(self) -> tuple[str, ...]:
        """The pattern that a text must contain for the detector to run, in the syntax of re2."""
        return self.hints or tuple(map(re.escape, self.literals))

    def spans(self, text: str, folded: str) -> Iterator[Span]:
        """The secrets in the text."""
        for pattern in self.patterns:
            for found in pattern.finditer(text):
                # some patterns put the secret into a group, others only an alternative of its prefix
                groups = [found.span(index) for index in range(1, pattern.groups + 1) if len(found[index] or "") >= 16]
                start, end = max(groups, key=lambda span: span[1] - span[0], default=found.span())
                rest = _REST.match(text, end)
                yield Span(start, rest.end() if rest else end, self.kind)


def _library(
    kind: str, plugin: type[RegexBasedDetector], *literals: str, hints: tuple[str, ...] = ()
) -> LibraryDetector:
    return LibraryDetector(kind, literals, tuple(plugin().denylist), hints)


LIBRARY: tuple[LibraryDetector, ...] = (
    # its second pattern, for a secret key near "aws", has false alarms in base64
    replace(
        _library("aws-access-key-id", AWSKeyDetector, "AKIA", "ASIA", "A3T"), patterns=(AWSKeyDetector.denylist[0],)
    ),
    _library("npm-token", NpmDetector, "npm_"),
    _library("slack-token", SlackDetector, "xox", "hooks.slack.com/"),
    _library("stripe-key", StripeDetector, "k_live_"),
    _library("sendgrid-key", SendGridDetector, "SG."),
    _library("square-token", SquareOAuthDetector, "sq0csp-"),
    _library("twilio-key", TwilioKeyDetector, "AC", "SK", hints=("(?:AC|SK)[a-z0-9]{32}",)),
    # the first part of a bot token is a number in base64
    _library(
        "discord-token",
        DiscordBotTokenDetector,
        *("MT", "MD", "Mj", "Mz", "NT", "ND", "Nj", "Nz", "OT", "OD"),
        hints=(r"[MNO][DTjz][A-Za-z0-9_-]{22,24}\.[A-Za-z0-9_-]{6}\.",),
    ),
    _library("mailchimp-key", MailchimpDetector, "-us", hints=("-us[0-9]",)),
)
# These are looked for in lower case.
FOLDED_LIBRARY: tuple[LibraryDetector, ...] = (
    _library("cloudant-key", CloudantDetector, "cloudant"),
    _library("ibm-key", IbmCloudIamDetector, "ibm"),
    _library("ibm-key", IbmCosHmacDetector, "ibm", "hmac"),
    _library("softlayer-key", SoftlayerDetector, "softlayer"),
)
