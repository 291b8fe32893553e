"""A session in the terminal, from another process: `follow` reads, `events` and `lines` are pure."""
