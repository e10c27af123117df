"""How often a finding names the fault that was put into a program."""
