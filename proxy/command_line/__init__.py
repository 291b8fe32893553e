"""What all commands share: help, errors of usage, settings from the environment and a file, completion."""
