"""How sure a forecaster is of each of its inputs: the tests that every forecaster carries."""
