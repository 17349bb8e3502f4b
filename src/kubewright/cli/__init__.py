"""The command line: `kubewright`, also `python -m kubewright.cli`.

Nothing is imported here. `main` is the entry point, `root` the tree of commands, and each command is a module that is
loaded when it is called.
"""
