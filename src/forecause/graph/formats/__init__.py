"""A graph as JSON, CSV, GraphML, DOT and other packages' objects."""
