"""Claims about the study of levels with few rows."""

import numpy as np
import pytest
import statsmodels.api as sm

from forecause.data.windows import Windows
from forecause_bench import weak_links


def test_the_oracle_tests_each_candidate_given_the_true_causes():
    table = next(weak_links.tables(1, 1))
    windows = Windows.of(table.panel, weak_links.MAX_LAG)
    found = weak_links.oracle_p_values(windows, table.true)
    values, lag = table.panel.values, weak_links.MAX_LAG
    target, source, place = (int(one) for one in np.argwhere(table.true)[0])
    causes = [(int(j), int(k)) for j, k in np.argwhere(table.true[target])]
    past = [values[lag - 1 - k : len(values) - 1 - k, j] for j, k in causes]
    fit = sm.OLS(values[lag:, target], sm.add_constant(np.column_stack(past))).fit()
    own = 1 + causes.index((source, place))
    assert found[target, source, place] == pytest.approx(fit.pvalues[own], rel=1e-6)


def test_a_choice_is_scored_by_its_true_and_false_edges():
    true = np.zeros((2, 2, 1), dtype=bool)
    true[0, 0, 0] = true[1, 0, 0] = True
    chosen = np.ones((2, 2, 1), dtype=bool)
    found = weak_links.score((chosen, 0.1), true)
    assert found == (pytest.approx(2 * 2 / 6), 0.5, 1.0, 0.1, 1.0)


def test_the_page_tells_every_rule_on_every_kind_of_table(monkeypatch, tmp_path):
    few = [weak_links.unlinked(name, 120, 3) for name in weak_links.UNLINKED]
    kinds = ["sparse linear", *(cell.name for cell in weak_links.MECHANISMS)]
    linked = [few[0]._replace(kind=kind) for kind in kinds]
    monkeypatch.setattr(weak_links, "tables", lambda first, seeds: iter(linked + few))
    weak_links.main([str(tmp_path), "--seeds", "1"])
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert text.count("| oracle, true causes given, 5 % |") == 4
    assert "| rule | white-noise | ar-95 | random-walks |" in text
