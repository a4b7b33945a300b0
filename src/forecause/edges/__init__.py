"""Tests become q-values, q-values become edges, edges get grades; and what the user knows."""
