"""Is the exported model the network? The question, and the facts about both before any value is compared."""
