"""A user's command as the judge: run it without trusting it, and decide from its exit code and output."""
