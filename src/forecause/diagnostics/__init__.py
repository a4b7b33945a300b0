"""May this run be believed: alerts, stationarity, power, lag window, regimes."""
