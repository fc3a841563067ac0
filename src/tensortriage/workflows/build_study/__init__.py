"""Many builds of one model: which choice makes a build bad."""
