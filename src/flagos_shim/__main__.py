"""``python -m flagos_shim train.py``: run a program with ``cuda`` routed to the vendor's device."""

from ._launcher import main

if __name__ == "__main__":
    main()
