"""The log of a command: levels, options, and the lines themselves."""
