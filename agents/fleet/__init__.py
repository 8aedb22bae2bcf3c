"""The server's side of a fleet: its folder, its users, enrolment, plans, one machine or three.

folder.py is the page to begin with; serving.py puts it all together. May import from `bus`,
`plans` and `responder` among the agents' packages, and from all layers below.
"""
