"""One module for each command, registered in `cli.root`. Output, targets and project files are in `cli`."""
