"""The reader of logs."""
