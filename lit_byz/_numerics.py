"""The version of the code that makes numbers."""

# Raised whenever the same settings give other results than before (beyond the last bits that differ
# between processors): a run of an older version is then computed again, and can still be compared
# with. ``tests/test_numerics.py`` fails when results change and this number has not.
# A change that concerns one component alone raises that class's ``numerics`` instead, from 1.
NUMERICS = 1
