"""What is asked of an engine, as data; how its values are seen; and how its answers are kept."""
