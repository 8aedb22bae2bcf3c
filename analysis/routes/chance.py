"""What sampling explains: how likely a member of a set stays unseen though it is still there."""

NEVER = 1e-6
"""A member that chance hides so rarely is gone. Every trace asks again for every member: at one in
a million, one false word is expected in a year of traces every five minutes, ten members each."""

DOUBTFUL = 0.01
"""So far the window of a change reaches: a member that hides so rarely had hardly been there."""

MOST_UNITS = 1_000


def unseen_by_chance(seen: int, tested: int, later: int) -> float:
    """Probability that the last `later` of all flows miss a member that `seen` of the `tested` ones
    before them passed, when only chance decides which flow passes which.

    Then every order of the flows is equally likely, and the number is that of orders in which none
    of the last is one of `seen` (hypergeometric). Nothing is assumed of how evenly a balancer
    spreads flows. Large counts are scaled down: a year of one member is no proof against a second.
    """
    if tested > MOST_UNITS:
        seen, tested = max(1, seen * MOST_UNITS // tested), MOST_UNITS
    total, probability = tested + later, 1.0
    few, many = sorted((seen, later))
    for index in range(few):
        probability *= (total - many - index) / (total - index)
        if probability < NEVER / MOST_UNITS:
            break
    return probability
