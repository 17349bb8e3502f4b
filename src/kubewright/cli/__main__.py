"""`python -m kubewright.cli`: the command line if the script is not on the PATH."""

from kubewright.cli.main import main

if __name__ == "__main__":
    main()
