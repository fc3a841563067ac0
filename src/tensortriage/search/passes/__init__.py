"""The passes of a search: each proposes subsets and receives whether they fail."""
