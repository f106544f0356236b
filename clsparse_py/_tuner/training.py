"""Train decision trees that minimise lost time.

The time lost counts, not how often the fastest label is missed. So labels are first reduced to a few that serve every case,
labels within the noise of the best one tie, cases weigh as much as a wrong choice costs, and a leaf takes the label that loses
least over its cases. The loss of a case is in part the estimate of a forest that was grown without the case: this way single
measurements mislead small trees less (born-again trees: Breiman and Shang, 1996; out-of-bag estimates: Breiman, 2001).

The untuned rule may be a label, too: then a tree corrects the rule. Cross-validation over families and cases decides whether the
rule is a label, and how far trees are pruned. A question keeps the untuned rule if its tree loses no less time in families that
the tree was not trained on.
"""

from __future__ import annotations

import collections
import itertools
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
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

#: Values to try for the least share of time that one more label (kernel or method) must save to be used in a tree at all.
_WORTH_A_LABEL = (0.003, 0.01, 0.03)
#: Number of folds of cross-validation of decision trees.
_FOLDS = 5
#: Number of trees of the random forest that smooths the measured costs of kernels or methods.
_FOREST = 60
#: Least number of cases at a leaf of the random forest that smooths the measured costs of kernels or methods.
_FOREST_CASES = 3
#: Weight of the random forest's prediction in the smoothed cost of a kernel or method; the measured cost has the rest.
_FOREST_SHARE = 2 / 3
#: Largest cost of a kernel or method when costs are smoothed: the logarithm of its time divided by the best time.
_MOST_LOST = math.log(2.0)
#: Least cost of an unmeasured kernel or method when costs are smoothed: the logarithm of its time divided by the best time.
_LEAST_UNKNOWN = math.log(1.3)
#: Most leaves of a trained decision tree.
_MOST_LEAVES = 32
#: Least number of cases at a leaf of a trained decision tree.
_LEAF_CASES = 5
#: Label that stands for the choice of the untuned rule: the first choice in a table of observations, if the table has it.
_RULE = ""
#: Names of features that measure the size of a problem; the first one that all cases have is taken.
_SIZES = ("nnz", "n")


@dataclass(frozen=True)
class Losses:
    """Losses of choices: their times relative to the best label of each case.

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
        """Return the losses of time as profiles hold them in JSON, with four decimals."""
        return {"cases": self.cases} | {name: round(getattr(self, name), 4) for name in ("errors", "mean", "p95", "worst")}


@dataclass(frozen=True)
class Answer:
    """The tree that answers a question, and its losses.

    Attributes
    ----------
    tree : Tree
        The tree for the profile.
    tuned : bool
        Whether the tree is the trained one; else it is the untuned rule, which the trained tree did not beat.
    trained : Tree
        The trained tree.
    scores : dict of str to Losses
        Losses of the tree on "train" and "test", of the untuned rule on "untuned train" and "untuned test", and of the trees of
        cross-validation on the families left out as "folds".
    """

    tree: Tree
    tuned: bool
    trained: Tree
    scores: dict[str, Losses]

    def to_json(self) -> dict[str, Any]:
        """Return the number of leaves of the answer's tree, whether it was trained, and its scores, as a profile stores these."""
        scores = {name.replace(" ", "_"): losses.to_json() for name, losses in self.scores.items() if losses.cases}
        return {"leaves": sum(1 for _ in leaves(self.tree)), "tuned": self.tuned, **scores}


def losses(observations: Sequence[Observation], choose: Callable[[Observation], str]) -> Losses:
    """Return statistics of chosen labels' times relative to the best; labels without a time count as `TUNER.unknown_loss`."""
    lost = np.array([_loss(observation, choose(observation)) for observation in observations])
    if not lost.size:
        return Losses(0, 0.0, 1.0, 1.0, 1.0)
    is_lost = lost > np.array([1 + observation.noise for observation in observations])
    return Losses(
        lost.size, float(is_lost.mean()), float(np.exp(np.log(lost).mean())), float(np.percentile(lost, 95)), float(lost.max())
    )


def _loss(observation: Observation, label: str) -> float:
    """Return a label's time divided by the best time: at most `failed_loss`, as if it failed; unmeasured `unknown_loss`."""
    if label in observation.failed:
        return TUNER.failed_loss
    seconds = observation.times.get(label)
    return TUNER.unknown_loss if seconds is None else min(seconds / observation.best, TUNER.failed_loss)


def answer(observations: Sequence[Observation], untuned: Tree | None) -> Answer | None:
    """Return the trained decision tree that answers a question of the tuner, or the untuned rule if no slower, with scores.

    Parameters
    ----------
    observations : sequence of Observation
        The observations of the question; the cases of `TEST` are only scored.
    untuned : Tree or None
        The rule that decides without tuning; None if no profile has one.

    Returns
    -------
    Answer or None
        None without any measurement of a case of `TRAIN`.
    """
    measured = [observation for observation in observations if observation.times]
    train = [observation for observation in measured if observation.split == TRAIN]
    test = [observation for observation in measured if observation.split == TEST]
    if not train:
        return None
    # Trees are trained with and without "keep the shipped rule" as a choice: the former generalise, the latter are smaller.
    tables = [_Table.of(train, has_rule=has_rule) for has_rule in ((True, False) if untuned is not None else (False,))]
    table, growth, held_out = _best_growth(tables)
    trained = _bound_by_size(_graft(table.tree(np.arange(len(train)), growth), untuned), untuned, train)
    by_key = {train[row].key: label or train[row].default for row, label in held_out.items()}
    folds = losses([observation for observation in train if observation.key in by_key], lambda case: by_key[case.key])
    rule = losses(train, lambda case: case.default)
    tuned = untuned is None or (_gains(folds, rule) and trained != untuned)
    tree = trained if tuned or untuned is None else untuned

    def choose(case: Observation) -> str:
        """Return the choice of the answer's decision tree for a case; a case holds the untuned tree's choice as its default."""
        return leaf_of(tree, case.features).label if tuned else case.default

    scores = {
        TRAIN: losses(train, choose),
        TEST: losses(test, choose),
        f"untuned {TRAIN}": rule,
        f"untuned {TEST}": losses(test, lambda case: case.default),
        "folds": folds,
    }
    return Answer(tree, tuned, trained, scores)


def _gains(folds: Losses, rule: Losses) -> bool:
    """Return whether cross-validated trees lose less time on average than the untuned rule, and little at the 95th percentile.

    False if there are too few families to leave some out.
    """
    if not folds.cases:
        return False
    tail = max(rule.p95 * rule.mean / folds.mean, 1.2)
    return folds.mean < rule.mean * (1 - TUNER.worth_a_tree) and folds.p95 <= tail


@dataclass(frozen=True)
class _Growth:
    """Limits of the growth of a tree.

    Attributes
    ----------
    label_worth : float
        Least saving of a further label, as a share of the time.
    leaf_penalty : float
        Least saving of a leaf in impurity, by cost-complexity pruning.
    """

    label_worth: float = _WORTH_A_LABEL[0]
    leaf_penalty: float = 0.0


@dataclass(frozen=True)
class _Table:
    """Observations as arrays, with a row for each case.

    Attributes
    ----------
    names : tuple of str
        Names of the features that differ between cases.
    features : numpy.ndarray of float32
        Features in the order of ``names``, in the dtype of scikit-learn's comparisons.
    labels : tuple of str
        Labels, the first of which is `_RULE` if there is an untuned rule.
    measured : numpy.ndarray
        Logarithm of the time lost with each label.
    costs : numpy.ndarray
        Costs of labels by which trees are grown: ``measured``, or its smoothed form.
    known : numpy.ndarray of bool
        Whether a label was measured.
    tied : numpy.ndarray of bool
        Whether a label is as fast as the best, but for the noise.
    families : numpy.ndarray
        Number of the case's family.
    shares : numpy.ndarray
        Share of the case in the time of its matrix: if a question is asked about parts of a matrix, small parts weigh little.
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
        """Return the table of some observations, a row for each; ``has_rule``: the untuned rule is one of the choices."""
        common = set.intersection(*(set(observation.features) for observation in observations))
        values = {name: [observation.features[name] for observation in observations] for name in sorted(common)}
        names = tuple(name for name, column in values.items() if min(column) < max(column))
        labels = tuple(sorted({label for observation in observations for label in observation.times}))
        labels = (_RULE, *labels) if has_rule else labels
        costs = np.log([[_loss(observation, label or observation.default) for label in labels] for observation in observations])
        names_of_families = dict.fromkeys(observation.family for observation in observations)
        families = {family: number for number, family in enumerate(names_of_families)}
        time_of_case: dict[str, float] = collections.defaultdict(float)
        for observation in observations:
            time_of_case[observation.case] += observation.best
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
        """Whether the untuned rule is one of the choices in the table of observations."""
        return self.labels[0] == _RULE

    def tree(self, rows: _Array, growth: _Growth) -> Tree:
        """Return the decision tree trained on the cases in some rows of the table."""
        table = self._smooth(rows)
        serving = table._select_labels(rows, growth.label_worth)
        if table._is_leaf(rows, serving):
            return table._leaf(rows, serving)
        classifier = table._fit(rows, serving, growth.leaf_penalty)
        return table._join_equal_leaves(classifier.tree_, 0, rows, serving)

    def penalties(self, rows: _Array, label_worth: float) -> _Array:
        """Return the penalties of a leaf, in cost-complexity pruning, at which the decision tree of some rows loses leaves."""
        table = self._smooth(rows)
        serving = table._select_labels(rows, label_worth)
        if table._is_leaf(rows, serving):
            return np.zeros(1)
        targets, weights = table._targets(rows, serving)
        path = table._fit(rows, serving, 0.0).cost_complexity_pruning_path(table.features[rows], targets, weights)
        return np.asarray(path.ccp_alphas)

    def _is_leaf(self, rows: _Array, serving: _Array) -> bool:
        """Return whether the decision tree of some matrices is one leaf: one choice serves them, or they are few or alike."""
        return len(serving) == 1 or not self.names or rows.size < TUNER.min_cases

    def _smooth(self, rows: _Array) -> _Table:
        """Return the table of observations with the costs of choices in some rows smoothed by a random forest of these rows."""
        if not self.names or len(self.labels) == 1 or rows.size < TUNER.min_cases:
            return self
        key = rows.tobytes()
        if key not in self._grown_by:
            from sklearn.ensemble import RandomForestRegressor

            measured, is_measured = self.measured[rows], self.known[rows]
            costs = np.minimum(measured, _MOST_LOST)
            # An unmeasured kernel or method is assumed to be no better than the measured ones, and to lose something.
            worst = np.where(is_measured, costs, 0.0).max(axis=1, keepdims=True)
            costs = np.where(is_measured, costs, np.maximum(worst, _LEAST_UNKNOWN))
            forest = RandomForestRegressor(
                _FOREST, min_samples_leaf=_FOREST_CASES, max_features=0.5, oob_score=True, random_state=0, n_jobs=-1
            )
            with warnings.catch_warnings():
                # A measured case keeps its costs if all trees of the random forest were grown with the case.
                warnings.filterwarnings("ignore", "Some inputs do not have OOB scores")
                forest.fit(self.features[rows], costs)
            predicted = np.asarray(forest.oob_prediction_).reshape(costs.shape)
            predicted = np.where(predicted > 0, predicted, costs)
            # A kernel or method that failed on a matrix keeps its high cost there, whatever the random forest predicts.
            capped = np.where(measured >= math.log(TUNER.failed_loss), measured, costs)
            smoothed = self.costs.copy()
            smoothed[rows] = (1 - _FOREST_SHARE) * capped + _FOREST_SHARE * predicted
            self._grown_by[key] = replace(self, costs=smoothed)
        return self._grown_by[key]

    def _fit(self, rows: _Array, serving: _Array, leaf_penalty: float) -> Any:
        """Return scikit-learn's decision tree, trained to choose a kernel or method (a serving label) for cases in some rows."""
        from sklearn.tree import DecisionTreeClassifier

        targets, weights = self._targets(rows, serving)
        classifier = DecisionTreeClassifier(
            max_leaf_nodes=_MOST_LEAVES, min_samples_leaf=_LEAF_CASES, ccp_alpha=leaf_penalty, random_state=0
        )
        return classifier.fit(self.features[rows], targets, weights)

    def _targets(self, rows: _Array, serving: _Array) -> tuple[_Array, _Array]:
        """Return each case's target (of its fastest choices the most common) and weight (the mean cost of other choices)."""
        costs = self.costs[np.ix_(rows, serving)]
        best = costs.min(axis=1, keepdims=True)
        ties = self.tied[np.ix_(rows, serving)] | (costs <= best + 1e-12)
        often = ties.sum(axis=0)
        if self._has_rule:
            often[0] = rows.size + 1
        targets = np.where(ties, often, -1).argmax(axis=1)
        weights = np.minimum(costs - best, math.log(TUNER.unknown_loss)).mean(axis=1)
        return targets, self.shares[rows] * (weights + 1e-4)

    def _select_labels(self, rows: _Array, worth: float) -> _Array:
        """Return the indices of a few choices that serve all cases well: the untuned rule, then one by one the best others."""
        serving: list[int] = [0] if self._has_rule else []
        served, shares = np.full(rows.size, np.inf), self.shares[rows] / self.shares[rows].sum()
        if serving:
            served = self.costs[rows, 0]
        while True:
            costs_with = shares @ np.minimum(served[:, None], self.costs[rows])
            label = int(costs_with.argmin())
            if serving and shares @ served - costs_with[label] < worth:
                return np.array(serving)
            serving.append(label)
            served = np.minimum(served, self.costs[rows, label])

    def _leaf(self, rows: _Array, serving: _Array) -> Leaf:
        """Return the leaf of the tree for the cases in some rows: the choice that loses least time, or the untuned rule."""
        sums = self.shares[rows] / self.shares[rows].sum() @ self.costs[np.ix_(rows, serving)]
        label = int(sums.argmin())
        if self._has_rule and sums[0] <= sums[label] + TUNER.worth_a_label:
            label = 0
        lost = np.average(self.measured[rows, serving[label]], weights=self.shares[rows])
        return Leaf(self.labels[serving[label]], int(rows.size), round(float(np.exp(lost)), 4))

    def _join_equal_leaves(self, grown: Any, node: int, rows: _Array, serving: _Array) -> Tree:
        """Return the decision tree below a node of scikit-learn's tree, with leaves of the least loss and equal leaves joined."""
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
        limit = _short_number(float(values[goes_left].max()), float(values[~goes_left].min()))
        return Split(self.names[column], limit, lower, upper)


def _graft(tree: Tree, rule: Tree | None) -> Tree:
    """Return a decision tree with the tree of the untuned rule in place of its leaves of the label `_RULE`."""
    if rule is None:
        return tree
    if isinstance(tree, Leaf):
        return rule if tree.label == _RULE else tree
    return _simplify(Split(tree.feature, tree.at_most, _graft(tree.then, rule), _graft(tree.otherwise, rule)), {})


def _bound_by_size(tree: Tree, rule: Tree | None, observations: Sequence[Observation]) -> Tree:
    """Return a tree that leaves problems larger than all training cases, which may fit no cache, to the untuned rule."""
    size = next((name for name in _SIZES if all(name in observation.features for observation in observations)), None)
    if rule is None or size is None:
        return tree
    return _simplify(Split(size, max(observation.features[size] for observation in observations), tree, rule), {})


def _simplify(tree: Tree, bounds: Mapping[str, tuple[float, float]]) -> Tree:
    """Return a decision tree without the comparisons that are decided by bounds (low, high] of its features."""
    if isinstance(tree, Leaf):
        return tree
    low, high = bounds.get(tree.feature, (-math.inf, math.inf))
    if high <= tree.at_most:
        return _simplify(tree.then, bounds)
    if low >= tree.at_most:
        return _simplify(tree.otherwise, bounds)
    lower = _simplify(tree.then, {**bounds, tree.feature: (low, tree.at_most)})
    upper = _simplify(tree.otherwise, {**bounds, tree.feature: (tree.at_most, high)})
    return lower if lower == upper else Split(tree.feature, tree.at_most, lower, upper)


def _short_number(low: float, high: float) -> float:
    """Return the shortest decimal number from ``low`` to below ``high``, near their geometric mean if both are positive."""
    middle = math.sqrt(low * high) if low > 0 else (low + high) / 2
    for digits in range(1, 17):
        number = float(f"{middle:.{digits}g}")
        if low <= number < high:
            return int(number) if number.is_integer() else number
    return low


def _best_growth(tables: Sequence[_Table]) -> tuple[_Table, _Growth, dict[int, str]]:
    """Return the table and limits of growth whose trees lose least time in cross-validation, with their choices there.

    Folds are whole families, and again single cases. A family that is like no other can be learned from its own cases alone: with
    folds of families trees would be too small, and with folds of cases too large.
    """
    first = tables[0]
    rows = np.arange(len(first.families))
    n_families = int(first.families.max()) + 1
    if n_families < 2 or rows.size < TUNER.min_cases:
        return first, _Growth(), {}
    by_family = first.families % min(n_families, _FOLDS)
    by_case = np.random.default_rng(0).permutation(rows) % _FOLDS
    trials: list[_Trial] = []
    for table, worth in itertools.product(tables, _WORTH_A_LABEL):
        path = np.unique(table.penalties(rows, worth))
        # Leaf penalties for pruning are tried between those at which the tree changes; the last one leaves the tree's root alone.
        penalties = [*np.sqrt(path[:-1].clip(0) * path[1:])[:: max(1, path.size // 16)], float(path[-1]) * 1.001 + 1e-9]
        for penalty in penalties:
            growth = _Growth(worth, float(penalty))
            labels, lost = _choose_left_out(table, by_family, growth)
            lost = (lost + _choose_left_out(table, by_case, growth)[1]) / 2
            size = sum(1 for _ in leaves(table.tree(rows, growth)))
            trials.append(_Trial(table, growth, labels, size, float(np.average(lost, weights=table.shares))))
    best = min(trials, key=lambda trial: (trial.mean, trial.size))
    return best.table, best.growth, best.chosen


class _Trial(NamedTuple):
    """A trial of cross-validation: table and growth, labels chosen for the families left out, number of leaves, and mean loss."""

    table: _Table
    growth: _Growth
    chosen: dict[int, str]
    size: int
    mean: float


def _choose_left_out(table: _Table, folds: _Array, growth: _Growth) -> tuple[dict[int, str], _Array]:
    """Return each case's choice by the decision tree trained on other folds, and the logarithm of the time that it loses."""
    labels: dict[int, str] = {}
    for fold in np.unique(folds):
        tree = table.tree(np.flatnonzero(folds != fold), growth)
        for row in np.flatnonzero(folds == fold).tolist():
            features = dict(zip(table.names, table.features[row].tolist(), strict=True))
            labels[row] = leaf_of(tree, features).label
    return labels, np.array([table.measured[row, table.labels.index(labels[row])] for row in range(len(folds))])
