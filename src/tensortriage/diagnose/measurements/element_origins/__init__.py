"""Where single wrong elements come from: followed back op by op, and by the rules of arithmetic."""
