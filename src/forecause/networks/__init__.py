"""Everything that needs torch: the networks, how they are trained, and their backward rules.

`settings` can be imported without torch; a network's module is imported when it is built.
"""
