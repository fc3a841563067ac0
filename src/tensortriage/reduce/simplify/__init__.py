"""After the nodes: everything else of a reduced case made smaller, step by step, each step seen to fail as before."""
