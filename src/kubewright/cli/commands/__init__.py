"""One module for each command, registered in `cli.main`. Not output, targets or project files; those are in `cli`."""
