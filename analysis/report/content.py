"""The report as a list of sections: what HTML and Markdown both show, in the same order."""

from pathbudget.analysis.report.answer import answer_section
from pathbudget.analysis.report.cautions import cautions
from pathbudget.analysis.report.connections import setup_section
from pathbudget.analysis.report.document import Paragraph, Section, Tone
from pathbudget.analysis.report.http import http_section
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.measured import pair_section, round_trip_section, table_section
from pathbudget.analysis.report.method import (
    definition_section,
    exclusion_section,
    finding_section,
    method_section,
)
from pathbudget.analysis.report.names import name_section
from pathbudget.analysis.report.prompts import upload_section
from pathbudget.analysis.report.routes import route_section
from pathbudget.analysis.report.streams import stream_section
from pathbudget.analysis.report.token_streams import token_section
from pathbudget.analysis.report.verdicts import verdict_section, waterfall_section
from pathbudget.analysis.report.whole_budget import whole_section
from pathbudget.analysis.report.words import counted, utc


def sections(lookup: Lookup) -> tuple[Section, ...]:
    """All sections, for people who decide first and for people who check last."""
    return (
        *_caution_sections(lookup),
        answer_section(lookup),
        verdict_section(lookup),
        round_trip_section(lookup),
        stream_section(lookup),
        *setup_section(lookup),
        *upload_section(lookup),
        *http_section(lookup),
        *token_section(lookup),
        *name_section(lookup),
        *route_section(lookup.routes),
        *(whole_section(lookup) or (waterfall_section(lookup),)),
        pair_section(lookup),
        finding_section(lookup),
        method_section(lookup),
        exclusion_section(lookup),
        table_section(lookup),
        definition_section(),
    )


def _caution_sections(lookup: Lookup) -> tuple[Section, ...]:
    """One banner above the answer, where something weakens every number below it."""
    texts = cautions(lookup.evaluation)
    if not texts:
        return ()
    banner = Paragraph(" ".join(texts), Tone.CAUTION)
    return (Section("caution", "Before you read on", (banner,)),)


def byline(lookup: Lookup) -> tuple[str, ...]:
    """What, how much, when: the line below the title, in parts that stay whole."""
    evaluation = lookup.evaluation
    facts = evaluation.provenance
    size = (
        counted(len(evaluation.regions), "region"),
        counted(len(evaluation.sites), "site"),
        counted(len(evaluation.tiers), "tier"),
    )
    return (
        ", ".join(size),
        counted(facts.samples, "sample"),
        f"measured from {utc(facts.started_unix_ns)}",
        f"to {utc(facts.ended_unix_ns)}",
        f"written {utc(evaluation.generated_unix_ns)}",
    )
