"""The smallest case as files that stand by themselves, and how it fails."""
