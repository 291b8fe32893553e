"""Playing Sessions against an agent: control client, driver, agents, progress, demo."""
