"""`python -m opkernel`: the same as the `opkernel` command."""

from opkernel.cli.main import main

if __name__ == "__main__":
    main()
