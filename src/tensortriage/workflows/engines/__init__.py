"""Engine files, plans, capabilities and recorded tactics, without comparing anything."""
