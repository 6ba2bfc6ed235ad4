"""``python -m offmap``: the command line, as ``torchrun`` starts it."""

from offmap.commands.app import main

if __name__ == "__main__":
    main()
