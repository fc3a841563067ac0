"""Where checks run: this thread, or several processes."""
