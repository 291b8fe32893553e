"""What is right, as it should be: any order and grouping that the graph allows, arguments by meaning."""
