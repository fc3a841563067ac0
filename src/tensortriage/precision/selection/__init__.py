"""Which nodes are kept in higher precision: influence, groups, candidates, confirmation."""
