"""The report as one HTML page: its document, the Sessions in it, and how they are embedded."""
