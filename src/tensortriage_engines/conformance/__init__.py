"""The conformance suite: what is relied on in an engine, and a trial of one in an environment."""
