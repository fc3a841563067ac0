"""Work on other processes and machines through Ray: functions as tasks with resources, objects that are sent once."""
