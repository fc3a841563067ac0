"""Every error metric of a pair of tensors, measured block by block in one visit."""
