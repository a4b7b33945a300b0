"""The models in which inputs are tested: lines, splines, and products of pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.common.arrays import Array, Index, Single
from forecause.data.variables import Inputs, groups_of
from forecause.regression.moments import BATCH
from forecause.regression.sample import Design, Sample
from forecause.regression.splines import spline_terms

# Shape of the model:
KNOTS = 5


class Designs:
    """Makes designs for some inputs, on one set of knots."""

    def __init__(self, inputs: Inputs, latest: Single, knots: npt.NDArray[Any]) -> None:
        """`latest` (window, column) is where the terms' moments are taken; knots (column, knot)."""
        self.inputs = inputs
        self.columns = latest.shape[1]
        self.knots = knots.astype(np.float64)
        terms = spline_terms(latest.astype(np.float64), self.knots)
        sd = terms.std(0, ddof=1)
        self.mean = terms.mean(0)
        self.sd = np.where(sd > 1e-9, sd, 1.0)  # a term that never varies stays zero
        scaled = (terms - self.mean) / self.sd
        self.slope = (scaled[..., 0] * scaled[..., 1]).mean(0)  # of the bend on the line
        self.stored_from: int | None = None  # column of a sample's rows where its terms begin

    def store_terms(self, samples: Sequence[Sample]) -> list[Sample]:
        """The samples with the spline terms of every place beside their past.

        Worth its memory where many designs are made of the same windows.
        """
        past = samples[0].rows[0].shape[1] - self.columns
        self.stored_from = past
        column = np.arange(past) % self.columns

        def widened(rows: Single) -> Single:
            end = past + past * (KNOTS - 1)  # of the terms
            wide = np.empty((len(rows), rows.shape[1] + past * (KNOTS - 1)), dtype=np.float32)
            wide[:, :past], wide[:, end:] = rows[:, :past], rows[:, past:]
            for start in range(0, len(rows), BATCH):
                given = rows[start : start + BATCH, :past].astype(np.float64)
                terms = self._terms(given, column)
                wide[start : start + BATCH, past:end] = terms.reshape(len(given), -1)
            return wide

        return [Sample(tuple(map(widened, s.rows)), s.columns) for s in samples]

    def straight(self, inputs: Index) -> Design:
        """A line for each of some inputs."""
        places, owner = self.inputs.places(inputs)
        groups = groups_of(owner, len(inputs))
        return Design(places, lambda values: values, groups, inputs, is_plain=True)

    def curved(self, inputs: Index) -> Design:
        """A spline for each of some inputs."""
        places, owner = self.inputs.places(inputs)
        kept, of_place = self._kept_terms(places, KNOTS - 1)
        groups = groups_of(owner[of_place], len(inputs))
        looked, terms = self._terms_of(places)
        if self.stored_from is not None:
            return Design(looked[kept], lambda values: values, groups, inputs, is_plain=True)
        return Design(looked, lambda values: _flat(terms(values))[:, kept], groups, inputs)

    def pairs(self, inputs: Index) -> Design:
        """Splines of some inputs, and products of a factor of one and of another; see factors."""
        own, factors = self.curved(inputs), self.factors(inputs)
        members, split = factors.groups, len(own.places)
        pairs = list(zip(*np.triu_indices(len(inputs), 1), strict=True))
        left = np.concatenate([np.repeat(members[i], len(members[j])) for i, j in pairs])
        right = np.concatenate([np.tile(members[j], len(members[i])) for i, j in pairs])

        def features(values: Array) -> Array:
            two = factors.transform(values[:, split:])
            return np.concatenate(
                [own.transform(values[:, :split]), two[:, left] * two[:, right]], axis=1
            )

        shared = [np.flatnonzero(np.isin(left, f) | np.isin(right, f)) for f in members]
        groups = [
            np.concatenate([alone, own.width + products])
            for alone, products in zip(own.groups, shared, strict=True)
        ]
        places = np.concatenate([own.places, factors.places])
        return Design(places, features, groups, inputs)

    def factors(self, inputs: Index) -> Design:
        """What is multiplied of some inputs: a line, and a bend without its line."""
        places, owner = self.inputs.places(inputs)
        kept, of_place = self._kept_terms(places, 2)
        column = places % self.columns
        looked, terms = self._terms_of(places)

        def features(values: Array) -> Array:
            return _flat(line_and_bend(terms(values), self.slope[column]))[:, kept]

        return Design(looked, features, groups_of(owner[of_place], len(inputs)), inputs)

    def _terms_of(self, places: Index) -> tuple[Index, Callable[[Array], Array]]:
        """The columns of a sample's rows that the terms of some places come from, and what makes
        them (window, place, term) of these."""
        if self.stored_from is None:
            column = places % self.columns
            return places, lambda values: self._terms(values, column)
        terms = np.arange(KNOTS - 1)
        stored = self.stored_from + places[:, None] * (KNOTS - 1) + terms
        return stored.ravel(), lambda values: values.reshape(len(values), -1, KNOTS - 1)

    def _kept_terms(self, places: Index, terms: int) -> tuple[Index, Index]:
        """Of `terms` per place those that say something, a label's level having but one; and the
        place that each belongs to."""
        counts = np.where(self.inputs.is_label(places), 1, terms)
        of_place = np.repeat(np.arange(len(places)), counts)
        within = np.arange(len(of_place)) - np.repeat(np.cumsum(counts) - counts, counts)
        return of_place * terms + within, of_place

    def _terms(self, values: Array, column: Index) -> Array:
        """Standardised spline terms (window, place, term) of places of these columns."""
        terms = spline_terms(values, self.knots[column])
        return (terms - self.mean[column]) / self.sd[column]


def line_and_bend(terms: Array, slope: Array) -> Array:
    """What is multiplied of places, (window, place, 2): the line, and the first bend without what
    the line explains of it, which is `slope` (place,); terms (window, place, term)."""
    return np.stack([terms[..., 0], terms[..., 1] - slope * terms[..., 0]], axis=2)


def _flat(values: Array) -> Array:
    """(window, ...) -> (window, feature)."""
    return values.reshape(len(values), -1)
