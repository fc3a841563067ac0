"""Why an element is NaN or infinite: the rules of arithmetic."""
