"""What the page of a real suite says and how it calls its metrics."""

from __future__ import annotations

_SELF = {"summary": "self-links included", "summary_no_self": "without self-links"}
_METRICS = {
    "auroc": "AUROC",
    "average_precision": "Average precision",
    "auprc_trapezoid": "AUPRC by trapezoids",
}
REAL_NAMES = {
    f"{view}/{metric}": f"{name} of the summary graph, {which}"
    for view, which in _SELF.items()
    for metric, name in _METRICS.items()
}
REAL_VIEWS = {
    "summary_no_self/auroc": "AUROC without self-links",
    "summary/auroc": "AUROC",
    "summary_no_self/average_precision": "average precision without self-links",
    "summary/average_precision": "average precision",
    "summary_no_self/f1": "F1 without self-links",
    "summary/f1": "F1",
}
REAL_READING = (
    "The truth says which variable drives which, not when: a pair's score is its largest over the "
    "lags. Mean ± standard deviation over seeds. AUROC and average precision tell how well the "
    "pairs are ranked, whatever edges a method chooses; the AUPRC by trapezoids is the area under "
    "straight lines between the points of the precision-recall curve, from recall 0 and precision "
    "1 on, as some published tables have it. Bold is best, underlined second, among the methods "
    "with a result for every seed. No method in this section sees the truth."
)
