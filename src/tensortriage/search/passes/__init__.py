"""The passes of a search: each proposes subsets and is told whether they fail."""
