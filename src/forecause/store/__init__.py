"""A finished run in a folder: written whole, checked when it is read."""
