"""What a command tells on the side: levels, options, and the lines themselves."""
