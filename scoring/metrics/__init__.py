"""Figures over verdicts, and what they mean."""
