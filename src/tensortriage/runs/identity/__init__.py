"""What an engine is, as far as answers of it are kept: all the code that it runs."""
