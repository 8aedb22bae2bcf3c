"""pandas data frames in, pandas data frames out, for notebooks and scripts (extra `frames`).

    samples_frame, envelopes_frame   measurements as two frames, in the columns of the store
    measurements_of                  the way back, of any frame that says enough
    evaluate_frames                  a frame of samples and a catalogue in, an `Evaluation` out
    catalogue_of                     frames of regions and sites as a catalogue
    lines_frame ... events_frame     what an evaluation says, a frame for each kind of result

A store as a frame is `pathbudget.agents.store.frames.stored_samples`. docs/notebooks.md says
more.
"""

from pathbudget.analysis.frame_catalogue import catalogue_of
from pathbudget.analysis.frame_columns import FrameError
from pathbudget.analysis.frame_intake import (
    envelopes_frame,
    evaluate_frames,
    measurements_of,
    samples_frame,
)
from pathbudget.analysis.frame_results import (
    assignments_frame,
    events_frame,
    findings_frame,
    incidents_frame,
    lines_frame,
    lines_of,
    pairs_frame,
    recommendations_frame,
    summaries_frame,
    whole_budgets_frame,
    whole_terms_frame,
)

__all__ = [
    "FrameError",
    "assignments_frame",
    "catalogue_of",
    "envelopes_frame",
    "evaluate_frames",
    "events_frame",
    "findings_frame",
    "incidents_frame",
    "lines_frame",
    "lines_of",
    "measurements_of",
    "pairs_frame",
    "recommendations_frame",
    "samples_frame",
    "summaries_frame",
    "whole_budgets_frame",
    "whole_terms_frame",
]
