"""What stands in the way of a tool being found and called: `pegboard lint`."""
