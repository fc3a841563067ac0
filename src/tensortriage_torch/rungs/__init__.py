"""Is the exported model the network? The question, and what is known of either before any value is compared."""
