"""Findings for machines: what was found and where, as annotations of GitHub, SARIF, and a summary in Markdown."""
