"""The forecasters, one file each."""
