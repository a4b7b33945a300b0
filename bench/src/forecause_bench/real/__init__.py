"""Real suites: recorded data with a known summary graph, read from a folder the user has."""
