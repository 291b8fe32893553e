"""How good it was: scorers, metrics and statistics, from the log alone."""
