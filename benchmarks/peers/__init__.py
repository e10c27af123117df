"""The same work through hookviz and its peers: what each costs, delivers and shows of hooks."""
