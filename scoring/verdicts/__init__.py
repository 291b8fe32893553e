"""What each scorer says of a Task, and why."""
