"""The forecasting station: models that predict X_t from its past, and how they are fitted."""
