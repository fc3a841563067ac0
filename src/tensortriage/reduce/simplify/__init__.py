"""After the nodes, everything else of a reduced case is made smaller; each step is checked to fail as before."""
