"""May this run be believed: one pass of checks, power, the lag window, regimes."""
