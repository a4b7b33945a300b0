"""What time alone explains: cycles, trends, level shifts, odd days; found, taken out, put back."""
