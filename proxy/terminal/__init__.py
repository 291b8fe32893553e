"""What commands share that write to a terminal: colours, marks, columns, a block drawn in place."""
