"""The report of a study, whatever its kind."""

from collections.abc import Callable
from pathlib import Path

from lit_byz.report import breakdown, init_scaling, misspecified, tuning, worst_case_table
from lit_byz.report.rendering import Reader, Rendered
from lit_byz.tracking.records import StudyResult

RENDERERS: dict[str, Callable[[StudyResult, Path, Reader], Rendered]] = {
    "sweep": worst_case_table.render,
    "init_scaling": init_scaling.render,
    "breakdown": breakdown.render,
    "misspecified": misspecified.render,
    "tuning": tuning.render,
}


def render(result: StudyResult, folder: Path, read: Reader) -> Rendered:
    """Table, figures and numbers of a study, drawn from what the ledger says.

    The files go into ``folder``; ``read`` gives other studies of the same store.
    """
    return RENDERERS[result.record.kind](result, folder, read)
