"""Findings for machines: the finding and its place, as annotations of GitHub, SARIF, and a summary in Markdown."""
