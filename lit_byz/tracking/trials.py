"""The trials of a study in an Optuna storage: each once, each in the hands of one process."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lit_byz.config.grid import Values
from lit_byz.config.search_space import Problem
from lit_byz.errors import BadRequest
from lit_byz.tracking.claims import Claim, ClaimLost, Claims, held
from lit_byz.tracking.patience import Patience
from lit_byz.tracking.silence import limit_silence
from lit_byz.tracking.store import Store
from lit_byz.tracking.suggest import suggest
from lit_byz.tracking.trial_claims import SessionClaims, claims_beside
from lit_byz.tracking.trial_storage import digest, open_storage, reached

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.study import Study
    from optuna.trial import FrozenTrial

# Attributes of a study and of its trials.
IDENTITY, RETRY_OF, TOKEN = "lit_byz.identity", "retry_of", "lit_byz.token"
RUNS, RUNS_PRUNED = "runs", "runs_pruned"


STATES = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}


@dataclass(frozen=True)
class Trial:
    """A trial as every process sees it; ``value`` of a pruned one is what it is at most."""

    number: int
    params: Values
    state: str
    value: float | None = None
    runs: Mapping[str, Any] = field(default_factory=dict)
    pruned_runs: int = 0


@dataclass
class TrialBook:
    """A study's trials.

    A process has a claim on each trial that it works on, and one on the study while it takes a
    trial: a trial that is marked as running and that nobody claims was left by a process that is
    gone, and is taken up by the next. Who has lost his claim writes no more: the trial is somebody
    else's then, with the same runs. ``patience`` is with the storage, ``runs_patience`` with the
    store of the runs.
    """

    problem: Problem
    study: "Study"
    storage: "BaseStorage"
    claims: Claims
    patience: Patience
    runs_patience: Patience
    retry_failed: bool = False
    _held: dict[int, Claim] = field(default_factory=dict)
    _to_retry: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.retry_failed:  # once: what fails again waits for the next command
            self._to_retry = {trial.number for trial in self.failed()}

    def trials(self) -> list[Trial]:
        return [_as_trial(trial) for trial in self._stored()]

    def _stored(self) -> "Sequence[FrozenTrial]":
        return self.patience.call(self.study.get_trials, deepcopy=False)

    @property
    def incumbent(self) -> float | None:
        """The best value of a complete trial, whoever computed it."""
        from optuna.trial import TrialState

        values = [t.value for t in self._stored() if t.state == TrialState.COMPLETE]
        return max((value for value in values if value is not None), default=None)

    def take(self) -> Trial | None:
        """A trial to work on: one that was left behind, one to be tried again, or a new one."""
        from optuna.trial import TrialState

        with held(self.claims, _claim(self.study.study_name)):  # nobody else takes one meanwhile
            while True:
                trials = self._stored()
                for trial in trials:
                    if trial.state == TrialState.RUNNING and self._hold(trial.number):
                        return _as_trial(trial)
                retried = [t for t in self.failed() if t.number in self._to_retry]
                if not retried and self.used >= self.problem.trials:
                    return None
                if retried:
                    made = self._add(retried[0].params, {RETRY_OF: retried[0].number})
                else:
                    made = self._add(suggest(self.problem, trials), {})
                if self._hold(made.number):
                    return _as_trial(made)

    def wait_for_others(self) -> bool:
        """Wait for a moment, if trials are in the hands of other processes; whether there are some.

        Such a trial ends, or is left by a process that is gone: who looks once does not see that.
        """
        from optuna.trial import TrialState

        theirs = [t for t in self._stored() if t.number not in self._held]
        if not any(t.state == TrialState.RUNNING for t in theirs) or self.runs_patience.hurried:
            return False
        self.runs_patience.sleep(self.claims.longest)
        return True

    def failed(self) -> "list[FrozenTrial]":
        """Trials that failed and were not tried again."""
        from optuna.trial import TrialState

        trials = self._stored()
        retried = {trial.user_attrs.get(RETRY_OF) for trial in trials}
        return [t for t in trials if t.state == TrialState.FAIL and t.number not in retried]

    @property
    def used(self) -> int:
        """How many trials there are; one that is tried again counts once."""
        trials = self._stored()
        return len(trials) - sum(RETRY_OF in trial.user_attrs for trial in trials)

    @property
    def settled(self) -> int:
        """How many trials have come to their end."""
        return sum(trial.state.is_finished() for trial in self._stored())

    def note(self, number: int, runs: Mapping[str, Any]) -> None:
        """Keep what is known of a trial's runs."""
        self._write("set_trial_user_attr", number, RUNS, dict(runs))

    def complete(self, number: int, value: float, pruned_runs: int) -> None:
        self._end(number, pruned_runs, value=value)

    def prune(self, number: int, upper_bound: float, pruned_runs: int) -> None:
        from optuna.trial import TrialState

        # At one step for all, so that the sampler orders pruned trials by their bounds alone.
        self._write("set_trial_intermediate_value", number, 0, upper_bound)
        self._end(number, pruned_runs, state=TrialState.PRUNED)

    def fail(self, number: int, pruned_runs: int) -> None:
        from optuna.trial import TrialState

        self._end(number, pruned_runs, state=TrialState.FAIL)

    def _end(self, number: int, pruned_runs: int, **told: Any) -> None:
        self._write("set_trial_user_attr", number, RUNS_PRUNED, pruned_runs)
        values, state = told.get("value"), told.get("state")
        if self._is_ours(number):
            # Told again if the storage went away before it answered.
            self.patience.call(self.study.tell, number, values, state, skip_if_finished=True)
        self.release(number)

    def _write(self, what: str, number: int, *values: Any) -> None:
        """Have the storage keep something of a trial, and wait for it if it is away."""
        from optuna.exceptions import UpdateFinishedTrialError

        def write() -> None:
            getattr(self.storage, what)(self._id(number), *values)

        if not self._is_ours(number):
            return
        try:
            self.patience.call(write)
        except UpdateFinishedTrialError:  # by somebody who had taken it over
            self.release(number)

    def _is_ours(self, number: int) -> bool:
        """Whether this process has the claim on a trial still."""
        claim = self._held.get(number)
        if claim is None:
            return False
        try:
            self.patience.call(claim.check)
        except ClaimLost:
            self.release(number)
            return False
        return True

    def release(self, number: int) -> None:
        """Give a trial back, unless it was lost."""
        claim = self._held.pop(number, None)
        if claim is not None:
            claim.give_back()

    def _hold(self, number: int) -> bool:
        if number in self._held:
            return False
        claim = self.claims.take(f"{_claim(self.study.study_name)}-{number}")
        if claim is None:
            return False
        self._held[number] = claim
        return True

    def _add(self, params: Values, attributes: dict[str, Any]) -> "FrozenTrial":
        from optuna.trial import TrialState, create_trial

        token = uuid.uuid4().hex
        space = {key: part.distribution() for key, part in self.problem.space.items()}
        new = create_trial(
            state=TrialState.RUNNING,
            params=params,
            distributions=space,
            user_attrs={**attributes, TOKEN: token},
        )

        def made() -> "list[FrozenTrial]":
            return [t for t in self._stored() if t.user_attrs.get(TOKEN) == token]

        def add() -> None:
            if not made():  # by an attempt that got no answer
                self.study.add_trial(new)

        self.patience.call(add)
        return made()[0]

    def _id(self, number: int) -> int:
        study_id = self.storage.get_study_id_from_name(self.study.study_name)
        return self.storage.get_trial_id_from_study_id_trial_number(study_id, number)


def _as_trial(stored: "FrozenTrial") -> Trial:
    attributes = stored.user_attrs
    return Trial(
        number=stored.number,
        params=stored.params,
        state=STATES.get(stored.state.name, "running"),
        value=stored.value,
        runs=attributes.get(RUNS, {}),
        pruned_runs=int(attributes.get(RUNS_PRUNED, 0)),
    )


def open_book(
    problem: Problem, store: Store, *, name: str | None, url: str | None, retry_failed: bool = False
) -> TrialBook:
    """The trials of a problem, new or as they were left.

    They are kept by a journal in the folder of the runs' ``store``, or by the database at ``url``,
    and the claims on them beside them.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study_name = name or default_name(problem)
    if url is not None and url.startswith("postgresql"):
        limit_silence()
    claims = claims_beside(url, store)
    # Two processes that make the tables of a new database would trip over each other.
    with reached(url), held(claims, _claim(study_name)):
        storage = open_storage(store.folder, study_name, url)
        study = optuna.create_study(
            storage=storage, study_name=study_name, direction="maximize", load_if_exists=True
        )
        known = study.user_attrs.get(IDENTITY)
        if known is None:
            study.set_user_attr(IDENTITY, problem.identity)
    if known not in (None, problem.identity):
        raise BadRequest(f"--study {study_name}: is a study of other settings; choose another name")
    patience = store.patience if url is None else Patience(url, store.patience.seconds)
    if isinstance(claims, SessionClaims):
        claims.patiently = patience.call  # not before: a database that is not there is told at once
    return TrialBook(problem, study, storage, claims, patience, store.patience, retry_failed)


def default_name(problem: Problem) -> str:
    """The same for the same settings, so that the same command goes on with its study."""
    return f"tune-{problem.reference()[0].plain['dataset']['name']}-{problem.identity[:10]}"


def _claim(study_name: str) -> str:
    return digest(study_name)[:24]
