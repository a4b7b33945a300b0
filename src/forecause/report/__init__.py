"""The page, the plots and what the terminal shows of a run."""
