"""The loopback world: sites and regions on 127/8, where no namespaces can be made.

`world.py` says what it can and what it cannot show.
"""
