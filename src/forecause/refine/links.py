"""Links: what a search may draw and what it must, by prior knowledge; its answer as a graph."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from forecause.common.arrays import Floats, Mask
from forecause.data import Panel
from forecause.edges.knowledge import Knowledge, Required, with_required
from forecause.errors import InputError
from forecause.graph import LaggedGraph, empty_scores
from forecause.graph.edge_table import CAUSE, WITHOUT_DIRECTION, mirrored

Assumptions = dict[int, dict[tuple[int, int], str]]  # {target: {(source, -lag): link}}


@dataclass(frozen=True, eq=False)
class Links:
    """Masks over (target, source, lag); the first lag is 0, or 1 if lag 0 takes no part."""

    allowed: Mask
    fixed: Mask  # edges that are required at a named lag
    required: tuple[Required, ...]
    variables: tuple[str, ...]
    first_lag: int

    @classmethod
    def of(cls, panel: Panel, max_lag: int, knowledge: Knowledge, first_lag: int = 0) -> Links:
        """All links, but for what is known."""
        names = panel.coding.variables
        known = knowledge.allowed(names, max_lag, first_lag)
        required, allowed = tuple(knowledge.required(known)), known.values
        fixed = np.zeros(allowed.shape, dtype=bool)
        for one in required:
            if one.all_of_them:
                fixed[one.target, one.source, np.array(one.lags) - first_lag] = True
        if first_lag == 0:
            allowed[:, :, 0] &= ~np.eye(len(allowed), dtype=bool)
            if has_cycle(fixed[:, :, 0].T):
                raise InputError(
                    "The edges required at lag 0 drive each other in a circle, which cannot be "
                    "within one row; require less, or name other lags."
                )
            allowed[:, :, 0] &= ~fixed[:, :, 0].T  # what is required rules out its reverse
        return cls(allowed, fixed, required, names, first_lag)

    def within(self, candidates: Mask) -> Links:
        """No other links than these candidates and the required ones."""
        wanted = self.fixed.copy()
        for one in self.required:
            wanted[one.target, one.source, np.array(one.lags) - self.first_lag] = True
        return replace(self, allowed=self.allowed & (candidates | wanted))

    def for_pcmci(self) -> Assumptions:
        """The link assumptions of PCMCI and PCMCI+."""
        return self._assumptions("-?>", {(1, 1): "o?o", (1, 0): "-?>", (0, 1): "<?-"})

    def for_lpcmci(self) -> Assumptions:
        """Those of LPCMCI, where a link may also be confounding; at lag 0, too."""
        return self._assumptions("o?>", {(1, 1): "o?o", (1, 0): "o?>", (0, 1): "<?o"})

    def for_lpcmci_without_instantaneous_causes(self) -> Assumptions:
        """Those of LPCMCI if whatever happens within a row has a hidden cause."""
        hidden = "<?>"
        return self._assumptions("o?>", {(1, 1): hidden, (1, 0): hidden, (0, 1): hidden})

    def _assumptions(self, lagged: str, now: dict[tuple[int, int], str]) -> Assumptions:
        """`now` gives the link of a lag-0 pair by whether its two directions are allowed."""
        links: Assumptions = {target: {} for target in range(len(self.allowed))}
        for i, j, place in np.argwhere(self.allowed | self.fixed).tolist():
            lag = place + self.first_lag
            link = CAUSE if self.fixed[i, j, place] else lagged
            if lag == 0:
                if (j, 0) in links[i]:
                    continue
                both = bool(self.allowed[i, j, 0]), bool(self.allowed[j, i, 0])
                link = CAUSE if self.fixed[i, j, 0] else now[int(both[0]), int(both[1])]
                links[j][i, 0] = mirrored(link)
            links[i][j, -lag] = link
        return links

    def completed(self, scores: Floats, chosen: Floats) -> Mask:
        """The chosen edges that are allowed, and the required ones."""
        blank = empty_scores(self.variables, scores.shape[2] + self.first_lag - 1, self.first_lag)
        before = chosen.astype(bool) & self.allowed
        full = with_required(blank.copy(data=before), blank.copy(data=scores), self.required)
        after: Mask = full.values.astype(bool)
        if self.first_lag == 0:  # a pair has one edge within a row: the required one
            added = after[:, :, 0] & (~before[:, :, 0] | self.fixed[:, :, 0])
            after[:, :, 0] &= ~added.T
        return after

    def directed(self, marks: Floats) -> npt.NDArray[np.str_]:
        """Marks (target, source, lag) in which a lag-0 pair points no forbidden way.

        A pair that the search left without direction, or turned, points the way that is allowed.
        """
        directed = marks.copy()
        if self.first_lag == 0:
            one_way = self.allowed[:, :, 0] & ~self.allowed[:, :, 0].T
            turned = np.isin(marks[:, :, 0], (*WITHOUT_DIRECTION, "<--", CAUSE))
            directed[:, :, 0][one_way & turned] = CAUSE
            directed[:, :, 0][one_way.T & turned] = mirrored(CAUSE)
        return directed


def graph_of(
    panel: Panel,
    scores: Floats,
    chosen: Floats,
    *,
    first_lag: int = 1,
    **details: Floats,
) -> LaggedGraph:
    """A graph from arrays (target, source, lag); `details` become columns of the edge table."""
    blank = empty_scores(panel.coding.variables, scores.shape[2] + first_lag - 1, first_lag)
    named = {name: blank.copy(data=values) for name, values in details.items()}
    return LaggedGraph.from_scores(blank.copy(data=scores), chosen, named)


def has_cycle(edges: Mask) -> bool:
    """Whether some walk along the edges (source, target) has as many steps as there are nodes."""
    walks = edges.astype(np.float64)
    for _ in range(len(edges).bit_length()):
        walks = np.minimum(walks @ walks, 1.0)
    return bool(walks.any())
