"""The loopback world: regions and sites on 127/8, where no namespaces can be made.

    geography.py   how long a round trip each pair gets, from places on the Earth
    world.py       addresses, the responder that makes the delays, truth per pair

The delays are made in user space, in the responder, and only TLS flights have them: the kernel
answers a SYN or a ping on loopback at once. docs/responder.md says what that means for results.
"""
