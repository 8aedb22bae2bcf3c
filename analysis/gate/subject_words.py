"""What a check is about, in words."""

import hashlib

import msgspec

from pathbudget.analysis.gate.checks import Check, Subject
from pathbudget.analysis.report.words import connections, percentile
from pathbudget.analysis.results import Carrier


def subject_words(subject: Subject) -> str:
    """``voice-ai, us-south to dallas, warm p95``."""
    return ", ".join(word for word in (subject.tier, place_words(subject)) if word)


def place_words(subject: Subject) -> str:
    """The same without the tier."""
    words = [_pair(subject)]
    if subject.whole:
        words.append("whole request")
    if subject.mode is not None:
        words.append(connections(subject.transport or Carrier.TLS, subject.mode))
    if subject.percentile:
        words[-1] += f" {percentile(subject.percentile)}"
    if subject.prompt_bytes:
        words.append(f"{subject.prompt_bytes:,} bytes")
    return ", ".join(word for word in words if word)


def visible(text: str) -> str:
    """`text` with what is invisible written out, like ``\\x1b``: names are from outside, and stand
    in logs and files that other programs read.
    """
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def fingerprint(check: Check) -> str:
    """The same for the same question in every run, whatever the answer; for pipelines that track
    findings from run to run.
    """
    asked = msgspec.json.encode((check.rule, check.subject))
    return hashlib.sha256(asked).hexdigest()[:32]


def _pair(subject: Subject) -> str:
    if subject.region and subject.site:
        return f"{subject.region} to {subject.site}"
    return subject.region or subject.site
