"""What a wrong tensor looks like: the patterns that different mistakes leave."""
