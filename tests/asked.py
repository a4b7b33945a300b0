"""What tests ask of forecasters about their inputs."""

import xarray as xr

from forecause.forecast.input_tests.closed_form import EVERY, closed_form_tests
from forecause.forecast.input_tests.protocol import TestRequest as Request
from forecause.graph.axes import empty_scores


def request_of(windows, suspects=None, allowed=None, **others):
    """A request about all inputs; nothing is suspected."""
    every = empty_scores(windows.panel.coding.variables, windows.max_lag).astype(bool)
    return Request(
        windows,
        xr.ones_like(every) if allowed is None else allowed,
        every if suspects is None else suspects,
        **others,
    )


def closed_form_answers(windows, suspects=None, allowed=None, kinds=EVERY):
    """p_value and stability over (target, source, lag)."""
    request = request_of(windows, suspects, allowed)
    return closed_form_tests(request, kinds).dataset(windows.panel.coding.variables)
