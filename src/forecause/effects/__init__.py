"""What follows from a run: effects of one input, futures under an action."""
