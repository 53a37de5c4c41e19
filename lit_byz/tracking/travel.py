"""Finished runs as one file, which any other store takes in.

The file is a gzip of JSON lines: a header, then a run a line. A run has its settings and identity,
the code that made it, every evaluation exactly as it was, some metrics of training at every
twentieth step, the last value of every other one, its times and its machine. What is not part of a
run's identity stays at home: places, addresses, checkpoints.
"""

import gzip
import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_byz.config import plain_yaml
from lit_byz.config.compose import compose_plain
from lit_byz.config.identity import Identity, identify
from lit_byz.config.schema import NOT_IDENTITY
from lit_byz.errors import BadRequest
from lit_byz.tracking.evaluations import ACCURACY, INITIAL, MEANS, VAL_ACCURACY, means
from lit_byz.tracking.logger import METRICS_AT_ONCE
from lit_byz.tracking.renamed import OLD_THRESHOLD, THRESHOLD
from lit_byz.tracking.store import (
    CODE,
    IDENTITY,
    KIND,
    MACHINE,
    SETTINGS,
    STATUS,
    Store,
    claim_on,
    flatten,
)

if TYPE_CHECKING:
    from mlflow.entities import Run

FORMAT = "lit_byz runs"
VERSION = 1
# Kept at every step that they were measured at, to the last bit: results are made of these.
EXACT = (INITIAL, ACCURACY, "test/loss", VAL_ACCURACY, "val/loss")
# Kept now and then, to a few digits: pictures are made of these.
THINNED = (
    *(THRESHOLD, "honest/mean_norm", "server/output_norm", "train/loss"),
    *("attack/damage", "attack/factor", "attack/bound", "attack/strongest_damage"),
)
EVERY = 20
DIGITS = 5
# Tags that go with a run.
IMPORTED = "lit_byz.imported"
KEPT = (STATUS, "lit_byz.versions", "lit_byz.gradients", "lit_byz.batch_norm", MACHINE)
COMMIT = "mlflow.source.git.commit"

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Imported:
    """What became of a file's runs."""

    new: int = 0
    known: int = 0
    other_code: int = 0
    """Of the new ones, those that the code here would compute anew."""


def export_runs(store: Store, experiment_id: str, path: Path, progress: Progress) -> int:
    """Write all finished runs of an experiment to a file; returns their number.

    The file has its name when it is complete.
    """
    query = f"tags.`{KIND}` = 'run' and attributes.status = 'FINISHED'"
    by_identity: dict[str, Run] = {}
    for run in store.search(experiment_id, query):  # the newest first, which reports take too
        by_identity.setdefault(run.data.tags[IDENTITY], run)
    runs = [by_identity[identity] for identity in sorted(by_identity)]
    header = {"format": FORMAT, "version": VERSION, "runs": len(runs), "every": EVERY}
    partly = path.with_name(f"{path.name}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    # The same runs make the same bytes, so that a file in a repository changes when they do.
    with partly.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        packed = (_packed(store, run) for run in runs)
        for place, line in enumerate(itertools.chain([header], packed)):
            text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
            file.write(text.encode() + b"\n")
            progress(place, len(runs))
    partly.replace(path)
    return len(runs)


def _packed(store: Store, run: "Run") -> dict[str, Any]:
    tags, info = run.data.tags, run.info
    series: dict[str, Any] = {}
    for key in (*EXACT, *THINNED):
        if pairs := store.history(info.run_id, key) if _has(run, key) else []:
            if key in THINNED:
                last = pairs[-1:]
                pairs = [pair for pair in pairs[:-1] if pair[0] % EVERY == 0] + last
                pairs = [(step, _rounded(value)) for step, value in pairs]
            series[key] = [[step for step, _ in pairs], [value for _, value in pairs]]
    end = series["test/accuracy"][0][-1]
    return {
        "identity": tags[IDENTITY],
        "settings": tags[SETTINGS],
        "code": tags[CODE],
        "name": info.run_name,
        "config": _portable(_config_of(store, run)),
        "last": {
            key: [end, value]
            for key, value in run.data.metrics.items()
            if key not in (*series, OLD_THRESHOLD)
        },
        "series": series,
        "began": info.start_time,
        "ended": info.end_time,
        "commit": tags.get(COMMIT),
        "tags": {key: tags[key] for key in KEPT if key in tags},
    }


def _has(run: "Run", key: str) -> bool:
    return key in run.data.metrics or (key == THRESHOLD and OLD_THRESHOLD in run.data.metrics)


def _config_of(store: Store, run: "Run") -> dict[str, Any]:
    """The settings that a run has kept as an artifact; its params are cut texts."""
    from mlflow.artifacts import download_artifacts

    path = download_artifacts(
        artifact_uri=f"{run.info.artifact_uri}/config.yaml", tracking_uri=store.uri
    )
    content: dict[str, Any] = plain_yaml.read(Path(path).read_text(encoding="utf-8"))
    return content


def _portable(plain: Mapping[str, Any]) -> dict[str, Any]:
    """A config without what is not part of a run's identity."""
    kept: dict[str, Any] = {}
    for name, value in plain.items():
        if name in NOT_IDENTITY:
            continue
        if isinstance(value, Mapping):
            inner = {k: v for k, v in value.items() if f"{name}.{k}" not in NOT_IDENTITY}
            if inner:
                kept[name] = inner
        else:
            kept[name] = value
    return kept


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def import_runs(store: Store, experiment_id: str, path: Path, progress: Progress) -> Imported:
    """Bring a file's runs into a store; those that it has stay as they are.

    A run whose identity does not follow from its settings and code is refused, and with it the
    file: nothing of it is taken in.
    """
    lines = list(_read(path))
    checked = [(line, _checked(line, path, place)) for place, line in enumerate(lines, 1)]
    query = f"tags.`{KIND}` = 'run' and attributes.status = 'FINISHED'"
    known = {run.data.tags.get(IDENTITY) for run in store.search(experiment_id, query)}
    new = other_code = 0
    for place, (line, now) in enumerate(checked, 1):
        if line["identity"] not in known:
            with store.alone(claim_on(line["identity"])):
                _unpack(store, experiment_id, line, path.name)
            new += 1
            other_code += now is None or now.digest != line["identity"]
        progress(place, len(checked))
    return Imported(new, len(checked) - new, other_code)


def _read(path: Path) -> Iterator[dict[str, Any]]:
    """The runs of a file, which must be complete."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            header = json.loads(next(file, "null"))
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise BadRequest(f"{path}: holds no exported runs")
            if header.get("version") != VERSION:
                raise BadRequest(f"{path}: is of version {header.get('version')}, not {VERSION}")
            found = [json.loads(line) for line in file]
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadRequest(f"{path}: cannot be read: {reason}") from error
    except (EOFError, ValueError) as error:
        raise BadRequest(f"{path}: is damaged: {error}") from error
    if len(found) != header.get("runs"):
        raise BadRequest(f"{path}: is damaged: {len(found)} of {header.get('runs')} runs are there")
    yield from found


def _checked(line: Mapping[str, Any], path: Path, place: int) -> Identity | None:
    """What the code here calls the run: None where it has no such settings any more."""
    where = f"{path}: run {place}"
    try:
        plain_yaml.check({key: value for key, value in line.items() if key != "series"})
        stated = Identity(str(line["settings"]), str(line["code"]))
        series, last = dict(line["series"]), dict(line["last"])
        config, _ = dict(line["config"]), dict(line["tags"])
        for steps, values in [*series.values(), *(([s], [v]) for s, v in last.values())]:
            _ = [(int(step), float(value)) for step, value in zip(steps, values, strict=True)]
    except plain_yaml.NotPlain as error:
        raise BadRequest(f"{where}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadRequest(f"{where}: is damaged: {error!r}") from error
    if stated.digest != line["identity"]:
        raise BadRequest(f"{where}: its identity does not follow from its settings and code")
    best = last.get("test/max_accuracy", [0, None])[1]
    if best is None or best != max(series.get("test/accuracy", [[], [best]])[1], default=None):
        raise BadRequest(f"{where}: its maximal accuracy is not that of its evaluations")
    try:
        now = identify(compose_plain(beneath=config))
    except BadRequest:
        return None
    if now.code == stated.code and now.settings != stated.settings:
        raise BadRequest(f"{where}: its settings are not those that it was computed with")
    return now


def _under_new_names(line: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A run's series and last values as runs have them now, whenever they were exported."""
    series, last = dict(line["series"]), dict(line["last"])
    known = series.pop(OLD_THRESHOLD, None) or series.get(THRESHOLD)
    if known is not None:
        series[THRESHOLD] = known
        if line["config"]["clip"]["name"] == "arc":
            series[OLD_THRESHOLD] = known
    # Initial accuracies were once exported with a run's last step.
    if INITIAL in last:
        series[INITIAL] = [[0], [last.pop(INITIAL)[1]]]
    pairs = {key: list(zip(*found, strict=True)) for key, found in series.items()}
    for key, value in means(pairs, str(line["tags"].get(STATUS, "finished"))).items():
        last[key] = [pairs[MEANS[key]][-1][0], value]
    return series, last


def _unpack(store: Store, experiment_id: str, line: Mapping[str, Any], source: str) -> None:
    from mlflow.entities import Metric, Param

    client = store.client
    tags = {
        **{key: str(line["tags"][key]) for key in KEPT if key in line["tags"]},
        IDENTITY: line["identity"],
        SETTINGS: line["settings"],
        CODE: line["code"],
        KIND: "run",
        IMPORTED: f"from {source}; metrics of training at every {EVERY}th step",
    }
    if line.get("commit"):
        tags[COMMIT] = line["commit"]
    run_id = client.create_run(
        experiment_id, start_time=line["began"], tags=tags, run_name=line["name"]
    ).info.run_id
    at = line["ended"] or int(time.time() * 1000)
    series, last = _under_new_names(line)
    metrics = [
        Metric(key, value, at, step)
        for key, (steps, values) in series.items()
        for step, value in zip(steps, values, strict=True)
    ]
    metrics += [Metric(key, value, at, step) for key, (step, value) in last.items()]
    params = [Param(k, v) for k, v in flatten({**line["config"], CODE: line["code"]}).items()]
    client.log_dict(run_id, line["config"], "config.yaml")
    client.log_batch(run_id, metrics[:METRICS_AT_ONCE], params)
    for start in range(METRICS_AT_ONCE, len(metrics), METRICS_AT_ONCE):
        client.log_batch(run_id, metrics[start : start + METRICS_AT_ONCE])
    client.set_terminated(run_id, "FINISHED", at)
