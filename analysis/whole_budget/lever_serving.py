"""What-ifs of the service: models of levers that the literature names, with what they assume.

A model keeps the samples it starts from: each request is changed, none is invented. Where it needs
chance (a hit or a miss, how many drafts are accepted), outcomes are spread evenly over the requests
in the order of their times, so that nothing depends on a seed and no outcome favours slow ones.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.series import NS_PER_MS
from pathbudget.analysis.whole_budget.case import Case, Changed, Edit, Setting
from pathbudget.analysis.whole_budget.groups import MODEL_IDS
from pathbudget.analysis.whole_budget.terms import Term, TermName, TermSource

Change = Callable[[Values], Values]

TOKENS = 10
"""Tokens of `first_10_tokens`."""

ENOUGH = 2_000
"""Requests to spread chance over; fewer samples are repeated, which makes them worth no more."""

TIED = 20_000
"""Requests that stand for two terms which a model ties together."""

GOLDEN = (math.sqrt(5) - 1) / 2
"""Multiples of it fall evenly into 0..1, however many there are."""

SHARE = "a share from 0 to 1"
ANY_TIME = "milliseconds, 0 or more"
MODELLED = "The interval holds the sampling error of the terms, not the error of the model."


def token_rate(case: Case, setting: Setting) -> Changed:
    """Another rate of tokens: the first ones in proportion."""
    setting = setting.only("per-second")
    rate = setting.get("per-second", 0.0, 1e-3, 1e6, "tokens per second, like token-rate=60")
    wanted = TOKENS / rate * 1e9
    old = _mean(_term(case, setting, TermName.FIRST_TOKENS))

    def edit(terms: dict[TermName, Term]) -> dict[TermName, Term]:
        return _with(terms, TermName.FIRST_TOKENS, lambda values: values * (wanted / old))

    return Changed(
        case=case.edited(edit),
        assumptions=(
            (
                f"Mean time per token {old / TOKENS / NS_PER_MS:.1f} ms becomes {1e3 / rate:.1f} "
                "ms; "
                "every request by the same factor. Time to first token stays."
            ),
            MODELLED,
        ),
        confirm=("inter-token times of the service at that rate (--traces, token_stream probe).",),
    )


def speculative(case: Case, setting: Setting) -> Changed:
    """Speculative decoding (Leviathan et al. 2023; Chen et al. 2023)."""
    setting = setting.only("acceptance", ("draft", "cost"))
    alpha = setting.get("acceptance", 0.8, 0, 0.999, "a share from 0 to 0.999")
    draft = round(setting.get("draft", 4, 1, 64, "tokens drafted per step, 1 to 64"))
    cost = setting.get("cost", 0.08, 0, 10, "cost of one draft over that of one token, 0 to 10")
    old = _mean(_term(case, setting, TermName.FIRST_TOKENS))
    slower = draft * cost + 1
    gain = tokens_per_step(alpha, draft) / slower
    steps = steps_needed(TOKENS, alpha, draft)

    def edit(terms: dict[TermName, Term]) -> dict[TermName, Term]:
        term = _widened(terms[TermName.FIRST_TOKENS])
        counts = _spread(np.searchsorted(np.cumsum(steps), _even(term.values_ns)), len(steps))
        values = term.values_ns / TOKENS * slower * counts
        return terms | {TermName.FIRST_TOKENS: replace(term, values_ns=values)}

    per_token = old / TOKENS / NS_PER_MS
    mean_steps = float(np.arange(len(steps)) @ steps)
    return Changed(
        case=case.edited(edit),
        assumptions=(
            (
                f"A step drafts {draft} tokens, each accepted with chance {alpha:g} "
                "independently of "
                f"the others, and costs {slower:.2f} tokens ({draft} drafts at {cost:g}, one "
                "check)."
            ),
            (
                "The accelerator has arithmetic to spare, as with small batches: under full load "
                "the "
                "check of the drafts is not free (Liu et al. 2024), and the gain shrinks or turns."
            ),
            "Time to first token stays; the draft's own prefill is left out.",
            MODELLED,
        ),
        confirm=("acceptance rate and inter-token times of the service with it on, at your load.",),
        notes=(
            (
                f"In a long answer the time per token goes from {per_token:.1f} to "
                f"{per_token / gain:.1f} ms ({gain:.2f} times). The first {TOKENS} tokens take "
                f"{mean_steps:.2f} steps on average, the last of which makes more than is needed: "
                f"{mean_steps * slower * per_token / TOKENS:.1f} ms each."
            ),
        ),
    )


def tokens_per_step(alpha: float, draft: int) -> float:
    """Mean tokens of a step: (1 - alpha^(draft + 1)) / (1 - alpha), Leviathan et al., eq. 1."""
    return (1 - alpha ** (draft + 1)) / (1 - alpha)


def steps_needed(tokens: int, alpha: float, draft: int) -> Values:
    """P(so many steps make the tokens), from no step on. A step makes 1 to `draft` + 1."""
    made = np.array([(1 - alpha) * alpha**i for i in range(draft)] + [alpha**draft])
    left = np.zeros(tokens + 1)  # left[i]: i tokens are still missing
    left[tokens] = 1.0
    done = [0.0]
    for _ in range(tokens):
        after = np.zeros(tokens + 1)
        for more, chance in enumerate(made, start=1):
            for missing in range(1, tokens + 1):
                after[max(0, missing - more)] += left[missing] * chance
        done.append(float(after[0]))
        left = after
        left[0] = 0.0
    return np.array(done) / math.fsum(done)


def prefix_cache(case: Case, setting: Setting) -> Changed:
    """Prefix caching (Gim et al. 2024; Kwon et al. 2023; Zheng et al. 2024)."""
    setting = setting.only("hit", ("hit-ms",))
    share = setting.get("hit", -1, 0, 1, f"{SHARE} of requests that hit, like prefix-cache=0.6")
    hit_ms = setting.get("hit-ms", 15.0, 0, 1e6, ANY_TIME)
    old = _mean(_term(case, setting, TermName.TTFT)) / NS_PER_MS
    p = case.tier.percentile
    notes: tuple[str, ...] = ()
    if share < p / 100:
        notes = (
            (
                f"{1 - share:.0%} of the requests miss: a percentile above p{100 * share:.0f} is "
                "still "
                f"that of a miss. p{p:g} itself falls from a hit rate of {p / 100:.0%} on."
            ),
        )
    return Changed(
        case=case.edited(_hits_of(TermName.TTFT, share, hit_ms)),
        assumptions=(
            (
                f"{share:.0%} of the requests find their prefix cached and have their first "
                "token in "
                f"{hit_ms:g} ms instead of {old:.0f} on average, spread as the others are."
            ),
            "A miss takes as long as before; hits come independently of everything else.",
            MODELLED,
        ),
        confirm=(
            (
                "time to first token by hit and miss, and the hit rate of a day (--traces with the "
                "cached input tokens)."
            ),
        ),
        notes=notes,
    )


def cached_keys(case: Case, setting: Setting) -> Changed:
    """Keys and introspection results kept in the gateway (RFC 7519, RFC 7662 section 4)."""
    setting = setting.only("hit", ("hit-ms",))
    share = setting.get("hit", 0.99, 0, 1, f"{SHARE} of requests whose key is there")
    hit_ms = setting.get("hit-ms", 1.0, 0, 1e6, ANY_TIME)
    old = _mean(_term(case, setting, TermName.GATEWAY)) / NS_PER_MS
    return Changed(
        case=case.edited(_hits_of(TermName.GATEWAY, share, hit_ms)),
        assumptions=(
            (
                f"{share:.1%} of the requests find their key in the gateway: {hit_ms:g} ms "
                "instead of "
                f"{old:.1f} on average; others ask the authority as before."
            ),
            "A key that is withdrawn is good until its entry is too old (RFC 7662 section 4).",
            MODELLED,
        ),
        confirm=("gateway spans by hit and miss (--traces), and the hit rate of a day.",),
    )


def _hits_of(name: TermName, share: float, hit_ms: float) -> Edit:
    """A share of the requests takes `hit_ms` on average, spread as the others are."""

    def edit(terms: dict[TermName, Term]) -> dict[TermName, Term]:
        term = _widened(terms[name])
        mean = _mean(term)
        hit = _even(term.values_ns) < share
        shrink = hit_ms * NS_PER_MS / mean if mean > 0 else 0.0
        quick = np.where(np.isfinite(term.values_ns), term.values_ns * shrink, np.inf)
        values = np.where(hit, np.minimum(quick, term.values_ns), term.values_ns)
        return terms | {name: replace(term, values_ns=values)}

    return edit


def chunked_prefill(case: Case, setting: Setting) -> Changed:
    """Chunked prefill (Agrawal et al. 2023 and 2024)."""
    setting = setting.only("arrivals", ("prefill", "chunk", "overhead"))
    tokens, first = (_term(case, setting, name) for name in (TermName.FIRST_TOKENS, TermName.TTFT))
    rate = setting.get("arrivals", 4.0, 0, 1e5, "prompts per second at one replica in a burst")
    prefill = setting.get("prefill", _mean(first) / NS_PER_MS, 0, 1e7, ANY_TIME)
    chunk = setting.get("chunk", 20.0, 0, 1e6, ANY_TIME)
    overhead = setting.get("overhead", 0.1, 0, 10, "share of its time, 0 or more")
    limit, stall = TOKENS * chunk * NS_PER_MS, prefill * NS_PER_MS
    slower = _scaled(TermName.TTFT, 1 + overhead)
    shared = (
        (
            f"Another prompt holds up the tokens by at most {chunk:g} ms each instead of by its "
            "whole "
            "prefill."
        ),
        f"Prefill in chunks takes {overhead:.0%} longer: time to first token grows by that.",
        (
            "The stored requests of before are those of a burst; queueing for the prefill itself "
            "is "
            "within the time to first token and stays."
        ),
        MODELLED,
    )
    confirm = (
        (
            "p99 of inter-token times under a burst of long prompts, with and without it "
            "(token_stream "
            "probe, --traces)."
        ),
    )
    if math.isfinite(tokens.n_effective):
        middle = float(np.median(tokens.values_ns[np.isfinite(tokens.values_ns)]))

        def cap(terms: dict[TermName, Term]) -> dict[TermName, Term]:
            return _with(
                terms,
                TermName.FIRST_TOKENS,
                lambda values: np.where(
                    np.isfinite(values), np.minimum(values, middle + limit), values
                ),
            )

        held = "What is above the median of the measured first tokens are stalls by prefills."
        return Changed(case.edited(cap).edited(slower), (held, *shared), confirm)

    def burst(cap_ns: float, longer: float) -> Edit:
        def edit(terms: dict[TermName, Term]) -> dict[TermName, Term]:
            term = _widened(terms[TermName.FIRST_TOKENS])
            mean = rate * _mean(term) / 1e9
            arrivals = _poisson(mean, _even(term.values_ns))
            values = term.values_ns + np.minimum(arrivals * stall * longer, cap_ns)
            return terms | {TermName.FIRST_TOKENS: replace(term, values_ns=values)}

        return edit

    return Changed(
        case=case.edited(burst(limit, 1 + overhead)).edited(slower),
        before=case.edited(burst(math.inf, 1.0)),
        assumptions=(
            (
                f"A burst: {rate:g} prompts a second come to the replica (Poisson), each with "
                f"{prefill:.0f} ms of prefill. Before, each one holds up the first tokens by all "
                "of "
                "that."
            ),
            *shared,
        ),
        confirm=confirm,
        notes=("Before and after are both under that burst: the allowance knows of none.",),
    )


def _poisson(mean: float, places: Values) -> Values:
    """Quantiles of a Poisson distribution at the places 0..1."""
    chances = [math.exp(-mean)]
    while math.fsum(chances) < 1 - 1e-9 and len(chances) < 10_000:
        chances.append(chances[-1] * mean / len(chances))
    return np.searchsorted(np.cumsum(chances), places).astype(np.float64)


def async_guardrail(case: Case, setting: Setting) -> Changed:
    """The guardrail looks at the prompt while the model works: only what it takes longer counts."""
    beside = _beside(setting)
    for name in (TermName.GUARDRAIL, *beside):
        _term(case, setting, name)
    until = "the first token" if len(beside) == 1 else f"the first {TOKENS} tokens"

    def edit(terms: dict[TermName, Term]) -> dict[TermName, Term]:
        tied = _tied([terms[name] for name in (TermName.GUARDRAIL, *beside)])
        check, *others = (term.values_ns for term in tied)
        covered = np.sum(others, axis=0)
        finite = np.where(np.isfinite(covered), covered, 0.0)
        left = np.where(np.isfinite(check), np.maximum(0.0, check - finite), np.inf)
        changed = [replace(tied[0], values_ns=left), *tied[1:]]
        return terms | {term.name: term for term in changed}

    return Changed(
        case=case.edited(edit),
        assumptions=(
            (
                f"It starts with the model, on the prompt alone, and must be done before {until} "
                "may "
                "be shown: max(guardrail, model) instead of their sum."
            ),
            "It takes no time from the model. A check of the answer itself cannot be hidden so.",
            "Where no ids tie them, guardrail and model are slow independently of each other.",
            MODELLED,
        ),
        confirm=("traces in which the guardrail's span overlaps the model's (--traces, joint).",),
    )


def _beside(setting: Setting) -> tuple[TermName, ...]:
    choices = {"ttft": (TermName.TTFT,), "answer": (TermName.TTFT, TermName.FIRST_TOKENS)}
    word = setting.words[0] if setting.words else "ttft"
    if setting.numbers or len(setting.words) > 1 or word not in choices:
        raise setting.wrong(f"{word!r} is not understood", "ttft or answer")
    return choices[word]


def _tied(terms: list[Term]) -> list[Term]:
    """Terms entry by entry: by their ids where they share them, else spread independently."""
    if terms[0].requests and all(term.requests == terms[0].requests for term in terms):
        return [replace(term, source=TermSource.MODEL) for term in terms]
    if all(_is_number(term) for term in terms):
        return [replace(term, source=TermSource.MODEL) for term in terms]
    random = np.random.default_rng(7)
    ids = tuple(f"{MODEL_IDS}{i}" for i in range(TIED))
    worth = min(term.n_effective for term in terms)
    tied: list[Term] = []
    for term in terms:
        ordered = np.sort(term.values_ns)
        ranks = np.ceil(np.arange(1, TIED + 1) / TIED * len(ordered) - 1e-9).astype(np.int64)
        values = random.permutation(ordered[ranks - 1])
        source = TermSource.MODEL
        tied.append(replace(term, values_ns=values, requests=ids, n_effective=worth, source=source))
    return tied


def _is_number(term: Term) -> bool:
    return math.isinf(term.n_effective) and len(term.values_ns) == 1


def _term(case: Case, setting: Setting, name: TermName) -> Term:
    """The term that a lever is about. Raises ConfigError where the budget has none."""
    terms = case.terms()
    if name not in terms:
        raise setting.wrong(f"{case.tier.name} has no {name}", "a tier that has it, or --terms")
    return terms[name]


def _mean(term: Term) -> float:
    """Over the requests that did not fail, ns; 0 where all did."""
    known = term.values_ns[np.isfinite(term.values_ns)]
    return float(known.mean()) if len(known) else 0.0


def _scaled(name: TermName, factor: float) -> Edit:
    return lambda terms: _with(terms, name, lambda values: values * factor)


def _with(terms: dict[TermName, Term], name: TermName, change: Change) -> dict[TermName, Term]:
    term = terms[name]
    changed = replace(term, values_ns=change(term.values_ns), source=TermSource.MODEL)
    return terms | {name: changed}


def _widened(term: Term) -> Term:
    """The term with enough entries to spread chance over, worth as much as before.

    Those with ids of requests keep them, one entry each.
    """
    times = 1 if term.requests else math.ceil(ENOUGH / len(term.values_ns))
    return replace(term, values_ns=np.tile(term.values_ns, times), source=TermSource.MODEL)


def _even(values: Values) -> Values:
    """For each entry a place in 0..1, spread evenly over entries in the order of their times."""
    order = np.argsort(values, kind="stable")
    places = np.empty(len(values))
    places[order] = (np.arange(1, len(values) + 1) * GOLDEN) % 1.0
    return places


def _spread(counts: "npt.NDArray[np.int64]", most: int) -> Values:
    return np.minimum(counts, most - 1).astype(np.float64)
