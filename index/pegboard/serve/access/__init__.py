"""Access control: who a client is, and which tools it may see and call."""
