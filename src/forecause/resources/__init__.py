"""What a run costs, how it keeps to a budget, and who shares its work."""
