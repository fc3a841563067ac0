"""What a diagnosis is asked, what it may cost, and what it ends with."""
