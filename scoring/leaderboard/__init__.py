"""The published figures, and when a Run may be set beside them."""
