"""The detectors of the library `detect_secrets`, in its fork bc-detect-secrets.

Yelp's original has had no release since May 2024, and questions about it are unanswered; the fork by the authors of
Checkov is typed and had its last release in September 2026. CredSweeper knows more formats and is maintained too, but
has 44 dependencies (408 MB, including onnxruntime and pandas) and announces the end of its way to scan a text.

Only the patterns are used: the library's scan reads line by line at 1 MB/s, and may ask a service whether a secret is
valid. Detectors are left out if they take more than linear time on hostile text (Artifactory, JwtToken), recognise a
key only by 88 base64 characters (AzureStorageKey), or use entropy and bare names, which had 3,000 distinct false alarms
in the 19 MB of real sessions of `benchmarks/redaction.py`, or find less than this package's own (BasicAuth,
PrivateKey).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module

from memory_pipeline.redaction.detectors import Span

# Some patterns have a fixed length, but newer tokens are longer.
_REST = re.compile("[A-Za-z0-9_-]{0,64}")


@dataclass(frozen=True)
class LibraryDetector:
    """A detector of the library, run on texts with one of the `literals`."""

    kind: str
    plugin: str
    """The module in `detect_secrets.plugins` and the class, separated by a dot."""
    literals: tuple[str, ...]
    hints: tuple[str, ...] = ()
    number_of_patterns: int | None = None
    """Number of the plugin's patterns that are used; None for all."""

    @cached_property
    def patterns(self) -> tuple[re.Pattern[str], ...]:
        """The plugin's patterns. The library is imported for the first text with a literal, which takes .15 s, mostly
        for `requests`."""
        module, name = self.plugin.split(".")
        plugin = getattr(import_module(f"detect_secrets.plugins.{module}"), name)
        return tuple(plugin().denylist)[: self.number_of_patterns]

    @property
    def triggers(self) -> tuple[str, ...]:
        """The pattern that a text must contain for the detector to run, in the syntax of re2."""
        return self.hints or tuple(map(re.escape, self.literals))

    def spans(self, text: str, folded: str) -> Iterator[Span]:
        """The secrets in the text."""
        for pattern in self.patterns:
            for found in pattern.finditer(text):
                # some patterns have a group for the secret, others only for an alternative of its prefix
                groups = [found.span(index) for index in range(1, pattern.groups + 1) if len(found[index] or "") >= 16]
                start, end = max(groups, key=lambda span: span[1] - span[0], default=found.span())
                rest = _REST.match(text, end)
                yield Span(start, rest.end() if rest else end, self.kind)


LIBRARY: tuple[LibraryDetector, ...] = (
    # its second pattern, for a secret key near "aws", has false alarms in base64
    LibraryDetector("aws-access-key-id", "aws.AWSKeyDetector", ("AKIA", "ASIA", "A3T"), number_of_patterns=1),
    LibraryDetector("npm-token", "npm.NpmDetector", ("npm_",)),
    LibraryDetector("slack-token", "slack.SlackDetector", ("xox", "hooks.slack.com/")),
    LibraryDetector("stripe-key", "stripe.StripeDetector", ("k_live_",)),
    LibraryDetector("sendgrid-key", "sendgrid.SendGridDetector", ("SG.",)),
    LibraryDetector("square-token", "square_oauth.SquareOAuthDetector", ("sq0csp-",)),
    LibraryDetector("twilio-key", "twilio.TwilioKeyDetector", ("AC", "SK"), hints=("(?:AC|SK)[a-z0-9]{32}",)),
    # the first part of a bot token is a number in base64
    LibraryDetector(
        "discord-token",
        "discord.DiscordBotTokenDetector",
        ("MT", "MD", "Mj", "Mz", "NT", "ND", "Nj", "Nz", "OT", "OD"),
        hints=(r"[MNO][DTjz][A-Za-z0-9_-]{22,24}\.[A-Za-z0-9_-]{6}\.",),
    ),
    LibraryDetector("mailchimp-key", "mailchimp.MailchimpDetector", ("-us",), hints=("-us[0-9]",)),
)
# Matched in lower case.
FOLDED_LIBRARY: tuple[LibraryDetector, ...] = (
    LibraryDetector("cloudant-key", "cloudant.CloudantDetector", ("cloudant",)),
    LibraryDetector("ibm-key", "ibm_cloud_iam.IbmCloudIamDetector", ("ibm",)),
    LibraryDetector("ibm-key", "ibm_cos_hmac.IbmCosHmacDetector", ("ibm", "hmac")),
    LibraryDetector("softlayer-key", "softlayer.SoftlayerDetector", ("softlayer",)),
)
