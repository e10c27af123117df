"""What every part uses and none is about: messages, tables, files that are written whole, interrupts."""
