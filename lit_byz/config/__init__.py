"""What a user may ask for: keys, groups and grids, from files and the command line, checked."""
