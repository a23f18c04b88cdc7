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
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module

from memory_pipeline.redaction.detectors import Span

# Some patterns have a fixed length, and newer tokens are longer.
_REST = re.compile("[A-Za-z0-9_-]{0,64}")


@dataclass(frozen=True)
class LibraryDetector:
    """A detector of the library, run on a text in which one of the `literals` stands."""

    kind: str
    plugin: str
    """The module in `detect_secrets.plugins` and the class, separated by a dot."""
    literals: tuple[str, ...]
    hints: tuple[str, ...] = ()
    number_of_patterns: int | None = None
    """Only so many of the plugin's patterns are used; None for all."""

    @cached_property
    def patterns(self) -> tuple[re.Pattern[str], ...]:
        """The plugin's patterns. The library is imported for the first text with a literal: it takes a seventh of a
        second, mostly for `requests`."""
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
                # some patterns put the secret into a group, others only an alternative of its prefix
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
# These are looked for in lower case.
FOLDED_LIBRARY: tuple[LibraryDetector, ...] = (
    LibraryDetector("cloudant-key", "cloudant.CloudantDetector", ("cloudant",)),
    LibraryDetector("ibm-key", "ibm_cloud_iam.IbmCloudIamDetector", ("ibm",)),
    LibraryDetector("ibm-key", "ibm_cos_hmac.IbmCosHmacDetector", ("ibm", "hmac")),
    LibraryDetector("softlayer-key", "softlayer.SoftlayerDetector", ("softlayer",)),
)
