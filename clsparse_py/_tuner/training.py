"""Train decision trees that minimise lost time.

The time lost counts, not how often the fastest label is missed. So labels are first reduced to the few with which every
case can be served, ties within the noise count as ties, cases weigh as much as a wrong choice costs there, and a leaf takes the
label that loses least over its cases. The loss of a case is in part the estimate of a forest that was grown without it:
single measurements mislead small trees less that way (born-again trees: Breiman and Shang, 1996; out-of-bag estimates: Breiman,
2001).

The untuned rule may be a label, too: then a tree corrects the rule where that is shown to gain. Whether it is, and
how far trees are pruned, is decided by cross-validation over families and cases. A question whose tree does not lose less
time than the untuned rule in families that it was not trained on keeps the rule.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

import numpy as np

from clsparse_py._decisions.tree import Leaf, Split, Tree, leaf_of, leaves
from clsparse_py._ground.records import dataclass
from clsparse_py._tuner.checkpoint import Observation
from clsparse_py._tuner.corpus import TEST, TRAIN
from clsparse_py._tuner.limits import TUNER

__all__ = ["Answer", "Losses", "answer", "losses"]

_Array = np.ndarray[Any, Any]

#: Least time saved by each further label, as a share; cross-validation picks the best of these.
_WORTH_A_LABEL = (0.003, 0.01, 0.03)
#: Folds of cross-validation.
_FOLDS = 5
#: Trees of the random forest that smooths the costs of labels.
_FOREST = 60
#: Least number of cases at a leaf of the forest.
_FOREST_CASES = 3
#: Weight of the forest's prediction in a smoothed cost; the measured cost has the rest.
_FOREST_SHARE = 2 / 3
#: Largest cost that smoothing takes: the logarithm of the time by the best time.
_MOST_LOST = math.log(2.0)
#: Least cost of a label that was not measured, likewise a logarithm.
_LEAST_UNKNOWN = math.log(1.3)
#: Most leaves of a tree.
_MOST_LEAVES = 32
#: Least number of cases at a leaf of a tree.
_LEAF_CASES = 5
#: The label "what the untuned rule takes"; always the first.
_RULE = ""
#: Features that tell how large a problem is.
_SIZES = ("nnz", "n")


@dataclass(frozen=True)
class Losses:
    """How well choices did: time relative to the best measured.

    Attributes
    ----------
    cases : int
    errors : float
        The share of cases in which another label was faster beyond the noise.
    mean, p95, worst : float
        Geometric mean, 95th percentile and maximum.
    """

    cases: int
    errors: float
    mean: float
    p95: float
    worst: float

    def to_json(self) -> dict[str, float]:
        """Return it as profiles hold it."""
        return {"cases": self.cases} | {name: round(getattr(self, name), 4) for name in ("errors", "mean", "p95", "worst")}


@dataclass(frozen=True)
class Answer:
    """The tree for a question, and how well it does.

    Attributes
    ----------
    tree : Tree
        What goes into the profile.
    tuned : bool
        Whether it was trained; else it is the untuned rule, which the trained one did not beat.
    trained : Tree
        The trained one, whether taken or not.
    scores : dict of str to Losses
        Of the tree on "train" and "test", of the untuned rule as "untuned train" and "untuned test", and of trained trees on
        families that they were not trained on as "folds".
    """

    tree: Tree
    tuned: bool
    trained: Tree
    scores: dict[str, Losses]

    def to_json(self) -> dict[str, Any]:
        """Return the answer's size and scores, as a profile stores them beside the tree."""
        size = {"leaves": sum(1 for _ in leaves(self.tree)), "tuned": self.tuned}
        return {
            **size,
            **{
                name.replace(" ", "_"): losses_of_split.to_json()
                for name, losses_of_split in self.scores.items()
                if losses_of_split.cases
            },
        }


def losses(observations: Sequence[Observation], choose: Callable[[Observation], str]) -> Losses:
    """Return the losses of choices; an unmeasured label counts as `TUNER.unknown_loss` or worse."""
    lost = np.array([_loss(observation, choose(observation)) for observation in observations])
    if not lost.size:
        return Losses(0, 0.0, 1.0, 1.0, 1.0)
    is_lost = lost > np.array([1 + observation.noise for observation in observations])
    return Losses(
        lost.size, float(is_lost.mean()), float(np.exp(np.log(lost).mean())), float(np.percentile(lost, 95)), float(lost.max())
    )


def _loss(observation: Observation, label: str) -> float:
    """Return the time with a label relative to the best one; at most as much as with one that fails."""
    if label in observation.failed:
        return TUNER.failed_loss
    seconds = observation.times.get(label)
    return TUNER.unknown_loss if seconds is None else min(seconds / observation.best, TUNER.failed_loss)


def answer(observations: Sequence[Observation], untuned: Tree | None) -> Answer | None:
    """Train a tree for one question of an operation and dtype.

    Parameters
    ----------
    observations : sequence of Observation
        Of that question. Those of `TEST` are scored alone.
    untuned : Tree or None
        The rule that decides without tuning; None where no profile has one.

    Returns
    -------
    Answer or None
        None where nothing was measured to train with.
    """
    measured = [observation for observation in observations if observation.times]
    train = [observation for observation in measured if observation.split == TRAIN]
    test = [observation for observation in measured if observation.split == TEST]
    if not train:
        return None
    # Train with and without "keep the shipped rule" as a label: the first generalises, the second gives smaller trees.
    tables = [_Table.of(train, has_rule=has_rule) for has_rule in ((True, False) if untuned is not None else (False,))]
    table, growth, held_out = _best_growth(tables)
    trained = _bound_by_size(_graft(table.tree(range(len(train)), growth), untuned), untuned, train)
    by_key = {train[row].key: label or train[row].default for row, label in held_out.items()}
    folds = losses([observation for observation in train if observation.key in by_key], lambda case: by_key[case.key])
    rule = losses(train, lambda case: case.default)
    # Nothing shows that a tree gains where there are too few families to leave some out. In the tail it may lose no more than it
    # gains in the mean.
    tail = max(rule.p95 * rule.mean / folds.mean, 1.2) if folds.cases else 0.0
    gains = bool(folds.cases) and folds.mean < rule.mean * (1 - TUNER.worth_a_tree) and folds.p95 <= tail
    tuned = untuned is None or (gains and trained != untuned)
    tree = trained if tuned or untuned is None else untuned
    # The untuned tree is scored by the operation's recorded default, which is its label.
    take: Callable[[Observation], str] = (lambda case: _take(tree, case)) if tuned else (lambda case: case.default)
    return Answer(
        tree,
        tuned,
        trained,
        {
            TRAIN: losses(train, take),
            TEST: losses(test, take),
            f"untuned {TRAIN}": rule,
            f"untuned {TEST}": losses(test, lambda case: case.default),
            "folds": folds,
        },
    )


def _take(tree: Tree, observation: Observation) -> str:
    return leaf_of(tree, observation.features).label


@dataclass(frozen=True)
class _Growth:
    """How large a tree grows.

    Attributes
    ----------
    label_worth : float
        What a further label has to save, as a share of the time.
    leaf_penalty : float
        What a leaf has to save of the impurity, by cost-complexity pruning.
    """

    label_worth: float = _WORTH_A_LABEL[0]
    leaf_penalty: float = 0.0


@dataclass(frozen=True)
class _Table:
    """Observations as arrays.

    Attributes
    ----------
    names : tuple of str
        Features that differ between cases.
    features : numpy.ndarray of float32
        As scikit-learn compares them; a row for each case.
    labels : tuple of str
        `_RULE` is the first where there is an untuned rule.
    measured : numpy.ndarray
        Logarithm of the time lost, for each case and label.
    costs : numpy.ndarray
        The same as trees are to be grown by.
    known : numpy.ndarray of bool
        Where a label was measured.
    tied : numpy.ndarray of bool
        Where a label is as good as the best, but for the noise.
    families : numpy.ndarray
        Of each case, by number.
    shares : numpy.ndarray
        Of what its matrix takes, each case's part: where a question is asked of parts of a matrix, small ones count for little.
    """

    names: tuple[str, ...]
    features: _Array
    labels: tuple[str, ...]
    measured: _Array
    costs: _Array
    known: _Array
    tied: _Array
    families: _Array
    shares: _Array
    _grown_by: dict[bytes, _Table] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, observations: Sequence[Observation], *, has_rule: bool) -> _Table:
        common = set.intersection(*(set(observation.features) for observation in observations))
        values = {name: [observation.features[name] for observation in observations] for name in sorted(common)}
        names = tuple(name for name, column in values.items() if min(column) < max(column))
        labels = tuple(sorted({label for observation in observations for label in observation.times}))
        labels = (_RULE, *labels) if has_rule else labels
        costs = np.log([[_loss(observation, label or observation.default) for label in labels] for observation in observations])
        families = {
            family: number for number, family in enumerate(dict.fromkeys(observation.family for observation in observations))
        }
        time_of_case: dict[str, float] = {}
        for observation in observations:
            time_of_case[observation.case] = time_of_case.get(observation.case, 0.0) + observation.best
        return cls(
            names,
            np.array([values[name] for name in names], np.float32).T.reshape(len(observations), len(names)),
            labels,
            costs,
            costs,
            np.array([[(label or observation.default) in observation.times for label in labels] for observation in observations]),
            costs <= np.log1p([[observation.noise] for observation in observations]),
            np.array([families[observation.family] for observation in observations]),
            np.array([observation.best / time_of_case[observation.case] for observation in observations]),
        )

    @property
    def _has_rule(self) -> bool:
        return self.labels[0] == _RULE

    def tree(self, cases: Iterable[int], growth: _Growth) -> Tree:
        """Return the tree trained on some cases."""
        rows = np.fromiter(cases, np.int64)
        return self._smoothed(rows)._tree(rows, growth)

    def penalties(self, rows: _Array, label_worth: float) -> _Array:
        """Return the penalties at which the tree that is trained on some cases loses leaves."""
        return self._smoothed(rows)._penalties(rows, label_worth)

    def _smoothed(self, rows: _Array) -> _Table:
        """Return the table with smoothed costs of some cases, computed from these cases alone."""
        if not self.names or len(self.labels) == 1 or rows.size < TUNER.min_cases:
            return self
        key = rows.tobytes()
        if key not in self._grown_by:
            from sklearn.ensemble import RandomForestRegressor

            measured, is_measured = self.measured[rows], self.known[rows]
            costs = np.minimum(measured, _MOST_LOST)
            # An unmeasured label is assumed to be no better than the measured ones, and to lose something.
            worst = np.where(is_measured, costs, 0.0).max(axis=1, keepdims=True)
            costs = np.where(is_measured, costs, np.maximum(worst, _LEAST_UNKNOWN))
            forest = RandomForestRegressor(
                _FOREST, min_samples_leaf=_FOREST_CASES, max_features=0.5, oob_score=True, random_state=0, n_jobs=-1
            )
            with warnings.catch_warnings():
                # A case that every tree was grown with has its own costs.
                warnings.filterwarnings("ignore", "Some inputs do not have OOB scores")
                forest.fit(self.features[rows], costs)
            predicted = np.asarray(forest.oob_prediction_).reshape(costs.shape)
            predicted = np.where(predicted > 0, predicted, costs)
            # A label that fails does so whatever the forest says.
            capped = np.where(measured >= math.log(TUNER.failed_loss), measured, costs)
            smoothed = self.costs.copy()
            smoothed[rows] = (1 - _FOREST_SHARE) * capped + _FOREST_SHARE * predicted
            self._grown_by[key] = replace(self, costs=smoothed)
        return self._grown_by[key]

    def _tree(self, rows: _Array, growth: _Growth) -> Tree:
        serving = self._serving(rows, growth.label_worth)
        if len(serving) == 1 or not self.names or rows.size < TUNER.min_cases:
            return self._leaf(rows, serving)
        classifier = self._fit(rows, serving, growth.leaf_penalty)
        return self._join_equal_leaves(classifier.tree_, 0, rows, serving)

    def _fit(self, rows: _Array, serving: _Array, leaf_penalty: float) -> Any:
        from sklearn.tree import DecisionTreeClassifier

        targets, weights = self._targets(rows, serving)
        classifier = DecisionTreeClassifier(
            max_leaf_nodes=_MOST_LEAVES, min_samples_leaf=_LEAF_CASES, ccp_alpha=leaf_penalty, random_state=0
        )
        return classifier.fit(self.features[rows], targets, weights)

    def _penalties(self, rows: _Array, label_worth: float) -> _Array:
        serving = self._serving(rows, label_worth)
        if len(serving) == 1 or not self.names or rows.size < TUNER.min_cases:
            return np.zeros(1)
        targets, weights = self._targets(rows, serving)
        path = self._fit(rows, serving, 0.0).cost_complexity_pruning_path(self.features[rows], targets, weights)
        return np.asarray(path.ccp_alphas)

    def _targets(self, rows: _Array, serving: _Array) -> tuple[_Array, _Array]:
        """Return each case's label and weight: of labels that tie the one that ties most often; what the others cost."""
        costs = self.costs[np.ix_(rows, serving)]
        best = costs.min(axis=1, keepdims=True)
        ties = self.tied[np.ix_(rows, serving)] | (costs <= best + 1e-12)
        often = ties.sum(axis=0)
        if self._has_rule:
            often[0] = rows.size + 1
        targets = np.where(ties, often, -1).argmax(axis=1)
        weights = np.minimum(costs - best, math.log(TUNER.unknown_loss)).mean(axis=1)
        return targets, self.shares[rows] * (weights + 1e-4)

    def _serving(self, rows: _Array, worth: float) -> _Array:
        """Return the fewest labels that serve all cases well: the rule, and one after another the one that saves most."""
        serving: list[int] = [0] if self._has_rule else []
        served, shares = np.full(rows.size, np.inf), self.shares[rows] / self.shares[rows].sum()
        if serving:
            served = self.costs[rows, 0]
        while True:
            with_each = shares @ np.minimum(served[:, None], self.costs[rows])
            next_one = int(with_each.argmin())
            if serving and shares @ served - with_each[next_one] < worth:
                return np.array(serving)
            serving.append(next_one)
            served = np.minimum(served, self.costs[rows, next_one])

    def _leaf(self, rows: _Array, serving: _Array) -> Leaf:
        sums = self.shares[rows] / self.shares[rows].sum() @ self.costs[np.ix_(rows, serving)]
        label = int(sums.argmin())
        if self._has_rule and sums[0] <= sums[label] + TUNER.worth_a_label:
            label = 0
        lost = np.average(self.measured[rows, serving[label]], weights=self.shares[rows])
        return Leaf(self.labels[serving[label]], int(rows.size), round(float(np.exp(lost)), 4))

    def _join_equal_leaves(self, grown: Any, node: int, rows: _Array, serving: _Array) -> Tree:
        """Return a tree from scikit-learn's, its leaves labelled by the time lost; alike ones are joined."""
        left, right = grown.children_left[node], grown.children_right[node]
        if left == right:
            return self._leaf(rows, serving)
        column = int(grown.feature[node])
        values = self.features[rows, column]
        goes_left = values <= grown.threshold[node]
        lower = self._join_equal_leaves(grown, left, rows[goes_left], serving)
        upper = self._join_equal_leaves(grown, right, rows[~goes_left], serving)
        if isinstance(lower, Leaf) and isinstance(upper, Leaf) and lower.label == upper.label:
            return self._leaf(rows, serving)
        limit = _between(float(values[goes_left].max()), float(values[~goes_left].min()))
        return Split(self.names[column], limit, lower, upper)


def _graft(tree: Tree, rule: Tree | None) -> Tree:
    """Return a tree with the untuned rule where it stands for that."""
    if rule is None:
        return tree
    if isinstance(tree, Leaf):
        return rule if tree.label == _RULE else tree
    return _within(Split(tree.feature, tree.at_most, _graft(tree.then, rule), _graft(tree.otherwise, rule)), {})


def _bound_by_size(tree: Tree, rule: Tree | None, observations: Sequence[Observation]) -> Tree:
    """Return a tree that leaves problems larger than all training cases to the rule, as these may fit no cache."""
    size = next((name for name in _SIZES if all(name in observation.features for observation in observations)), None)
    if rule is None or size is None:
        return tree
    return _within(Split(size, max(observation.features[size] for observation in observations), tree, rule), {})


def _within(tree: Tree, bounds: Mapping[str, tuple[float, float]]) -> Tree:
    """Return a tree simplified for features within bounds (low, high]: comparisons outside of them are resolved."""
    if isinstance(tree, Leaf):
        return tree
    low, high = bounds.get(tree.feature, (-math.inf, math.inf))
    if high <= tree.at_most:
        return _within(tree.then, bounds)
    if low >= tree.at_most:
        return _within(tree.otherwise, bounds)
    lower = _within(tree.then, {**bounds, tree.feature: (low, tree.at_most)})
    upper = _within(tree.otherwise, {**bounds, tree.feature: (tree.at_most, high)})
    return lower if lower == upper else Split(tree.feature, tree.at_most, lower, upper)


def _between(low: float, high: float) -> float:
    """Return the shortest number from ``low`` to below ``high``, near their geometric mean where both are positive."""
    middle = math.sqrt(low * high) if low > 0 else (low + high) / 2
    for digits in range(1, 17):
        number = float(f"{middle:.{digits}g}")
        if low <= number < high:
            return int(number) if number.is_integer() else number
    return low


def _best_growth(tables: Sequence[_Table]) -> tuple[_Table, _Growth, dict[int, str]]:
    """Return the table and growth that lose least on cases left out, and the labels chosen with them in families left out.

    Whole families are left out, and again cases here and there: some families are like no other, and what is to be learned of
    them only they tell. With families alone trees would come out too small, with cases alone too large.
    """
    first = tables[0]
    everything = np.arange(len(first.families))
    n_families = int(first.families.max()) + 1
    if n_families < 2 or everything.size < TUNER.min_cases:
        return first, _Growth(), {}
    by_family = first.families % min(n_families, _FOLDS)
    by_case = np.random.default_rng(0).permutation(everything) % _FOLDS
    tried: list[_Tried] = []
    for table, worth in itertools.product(tables, _WORTH_A_LABEL):
        path = np.unique(table.penalties(everything, worth))
        # Between the penalties at which the tree changes; the last one leaves the root alone.
        penalties = [*np.sqrt(path[:-1].clip(0) * path[1:])[:: max(1, path.size // 16)], float(path[-1]) * 1.001 + 1e-9]
        for penalty in penalties:
            growth = _Growth(worth, float(penalty))
            labels, lost = _choose_left_out(table, by_family, growth)
            lost = (lost + _choose_left_out(table, by_case, growth)[1]) / 2
            size = sum(1 for _ in leaves(table.tree(everything, growth)))
            tried.append(_Tried(table, growth, labels, size, float(np.average(lost, weights=table.shares))))
    best = min(tried, key=lambda trial: (trial.mean, trial.size))
    return best.table, best.growth, best.chosen


class _Tried(NamedTuple):
    """A trial of cross-validation: table and growth, labels chosen for the families left out, number of leaves, and loss."""

    table: _Table
    growth: _Growth
    chosen: dict[int, str]
    size: int
    mean: float


def _choose_left_out(table: _Table, folds: _Array, growth: _Growth) -> tuple[dict[int, str], _Array]:
    """Return the label chosen for each case by the tree of the other folds, and the logarithms of the time that these lose."""
    labels: dict[int, str] = {}
    for fold in np.unique(folds):
        tree = table.tree(np.flatnonzero(folds != fold), growth)
        for row in np.flatnonzero(folds == fold).tolist():
            features = dict(zip(table.names, table.features[row].tolist(), strict=True))
            labels[row] = leaf_of(tree, features).label
    return labels, np.array([table.measured[row, table.labels.index(labels[row])] for row in range(len(folds))])
