"""What a batch ended with, as plain data, as a page and as JUnit's XML."""
