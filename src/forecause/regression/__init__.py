"""Least squares from streamed moments, splines, robust tests, false discovery rates."""
