"""``report.py export FILE`` and ``report.py import FILE``."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from lit_byz.cli.plan import write_json
from lit_byz.errors import BadRequest
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.travel import export_runs, import_runs

# Runs after which a line says how far it is, where nobody watches a bar.
EVERY = 100


def travel(what: str, files: Sequence[str], ledger: Ledger, as_json: bool = False) -> int:
    """Write all finished runs to a file, or bring those of files into the store."""
    if not files or (what == "export" and len(files) > 1):
        raise BadRequest(f"{what}: name a file, such as runs.jsonl.gz")
    console, told = Console(quiet=as_json), Console(stderr=True)
    content: dict[str, dict[str, int]] = {}

    def progress(done: int, count: int) -> None:
        if done and done % EVERY == 0:
            told.print(f"{done}/{count} runs", highlight=False)

    store, experiment = ledger.store, ledger.experiment_id
    for name in files:
        path = Path(name)
        if what == "export":
            count = export_runs(store, experiment, path, progress)
            size = path.stat().st_size / 1000
            content[name] = {"runs": count}
            line = f"{count} finished runs in {path}, {size:,.0f} kB"
        else:
            found = import_runs(store, experiment, path, progress)
            content[name] = {"new": found.new, "known": found.known}
            line = f"{path}: runs brought in: {found.new}, there already: {found.known}"
            if found.other_code:
                line += f"; of other code, which sweeps here compute anew: {found.other_code}"
        console.print(line, highlight=False, soft_wrap=True)
    if as_json:
        write_json({"files": content})
    return 0
