"""What hostile input is made of, and how a command that takes it is watched."""
