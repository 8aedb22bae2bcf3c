"""A TCP and TLS 1.3 responder: the other end of our probes, at sites that we control.

It accepts, shakes hands and says nothing more. It never opens a connection of its own.
Start reading at `server.py`; docs/responder.md is the page for those who run one.

    certificate.py   the private authority and the certificate of the responder
    issuing.py       makes them
    delays.py        round trips made in user space, for the loopback world only
    limits.py        how many connections, how many per source, how long
    connections.py   what happens on one connection
    server.py        listens, counts, stops
    process.py       signals, the ready line, the life of the parent
    launch.py        starts one as a process, for the labs and for tests
"""
