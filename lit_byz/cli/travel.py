"""``report.py export FILE`` and ``report.py import FILE``."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from lit_byz.errors import BadRequest
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.travel import export_runs, import_runs

# Runs after which a line says how far it is, where nobody watches a bar.
EVERY = 100


def travel(what: str, files: Sequence[str], ledger: Ledger) -> int:
    """Write all finished runs to a file, or bring those of files into the store."""
    if not files or (what == "export" and len(files) > 1):
        raise BadRequest(f"{what}: name a file, such as runs.jsonl.gz")
    console, told = Console(), Console(stderr=True)

    def progress(done: int, count: int) -> None:
        if done and done % EVERY == 0:
            told.print(f"{done}/{count} runs", highlight=False)

    store, experiment = ledger.store, ledger.experiment_id
    for name in files:
        path = Path(name)
        if what == "export":
            count = export_runs(store, experiment, path, progress)
            size = path.stat().st_size / 1000
            line = f"{count} finished runs in {path}, {size:,.0f} kB"
        else:
            found = import_runs(store, experiment, path, progress)
            line = f"{path}: {found.new} runs brought in, {found.known} were there already"
            if found.other_code:
                line += f"; {found.other_code} are of other code, which sweeps here compute anew"
        console.print(line, highlight=False, soft_wrap=True)
    return 0
