"""A scored Run as text, and for other programs."""
