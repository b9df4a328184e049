"""What a run is called and what is kept of it."""
