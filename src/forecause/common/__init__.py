"""What every layer uses: names of arrays, files that are whole, bounded reading, shared work."""
