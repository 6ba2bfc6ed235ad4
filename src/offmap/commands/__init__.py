"""The command line: each command calls one library function and prints what it returns."""
