"""From evidence to a verdict: a ladder of cheap questions that stops at the first decisive answer."""
