"""A session in the terminal, from another process: `follow` reads, the rest is pure but for `cli`."""
