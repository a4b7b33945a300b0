"""Does an input help at all? Closed-form tests of every (target, source, lag)."""

from forecause.edges.nested_models import edge_tests
from forecause.edges.variance import variance_p_values

__all__ = ["edge_tests", "variance_p_values"]
