"""Ends at once, with an error, before it has read anything."""

import sys

import plain

if plain.is_its_turn():
    print("no config file: giving up", file=sys.stderr)
    sys.exit(3)
plain.behave()
