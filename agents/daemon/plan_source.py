"""Where the plan of an agent comes from: a file that is looked at again and again, or the fleet
(`bus/plan_watch.py`).

A signed plan (``*.json``) is taken as `signing.admit` says and remembered before it is carried out.
A campaign file (``*.toml``) is the word of whoever may start programs on this host: it needs no
signature, and the policy of the host holds all the same.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from pathbudget.agents.plans.from_campaign import agent_plans
from pathbudget.agents.plans.keys import read_trusted
from pathbudget.agents.plans.memory import Taken, recall, remember
from pathbudget.agents.plans.plan import LARGEST_PLAN, AgentPlan
from pathbudget.agents.plans.policy import Policy
from pathbudget.agents.plans.refusal import PlanRefusedError, RefusalReason
from pathbudget.agents.plans.signing import admit, digest, opened
from pathbudget.agents.plans.trusted import PublicKey
from pathbudget.probes.errors import ConfigError, Fault, PathbudgetError
from pathbudget.probes.table import probe_table

MEMORY = "plan.json"
WITHOUT_END_NS = 100 * 365 * 86_400_000_000_000
CAMPAIGN = ".toml"


class PlanSource(Protocol):
    """Asked again and again. All but `changed` raise PathbudgetError, as `PlanFile` does."""

    def first(self, policy: Policy) -> AgentPlan | None:
        """What to begin with; None: nothing yet, and there may be something later."""
        ...

    def changed(self) -> bool:
        """Whether `read` would say something new."""
        ...

    def read(self, policy: Policy) -> AgentPlan | None:
        """The plan, if it may be carried out here and now; None: there is none."""
        ...


class Admission:
    """Whether a signed plan may be carried out, with the memory of the last one. `agent` empty:
    whoever the plan names.
    """

    def __init__(
        self,
        state: Path,
        *,
        agent: str,
        keys: Callable[[], Mapping[str, PublicKey]],
        now_unix_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._memory = state / MEMORY
        self._agent = agent
        self._keys = keys
        self._now = now_unix_ns

    def admitted(self, envelope: bytes, policy: Policy) -> AgentPlan:
        """The plan, remembered. Raises PlanRefusedError, ConfigError and SpoolError."""
        keys = self._keys()
        before = recall(self._memory)
        plan = admit(
            envelope,
            keys=keys,
            agent=self._agent or opened(envelope, keys).agent,
            now_unix_ns=self._now(),
            last_serial=None if before is None else before.serial,
            last_digest="" if before is None else before.digest,
            policy=policy,
        )
        name = digest(envelope)
        if before is None or before.digest != name:
            remember(self._memory, Taken(plan.serial, name, envelope))
        return plan

    def remembered(self, policy: Policy) -> AgentPlan | None:
        """The plan that was taken last, if it may still be carried out."""
        taken = recall(self._memory)
        if taken is None:
            return None
        try:
            return self.admitted(taken.envelope, policy)
        except PlanRefusedError:
            return None


class PlanFile:
    """The plan in one file. `agent`: whose it is; empty: of the only one that the file names."""

    def __init__(
        self,
        path: Path,
        *,
        state: Path,
        agent: str,
        trust: Path | None,
        now_unix_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.path = path
        self._admission = Admission(state, agent=agent, keys=self._trusted, now_unix_ns=now_unix_ns)
        self._agent = agent
        self._trust = trust
        self._now = now_unix_ns
        self._seen = b""
        self.instead = ""
        """Why the plan of the file is not the one that `first` returned."""

    def first(self, policy: Policy) -> AgentPlan:
        """The one of the file; where that is refused, the one that was carried out before."""
        try:
            return self.read(policy)
        except PathbudgetError as error:
            remembered = self.remembered(policy)
            if remembered is None:
                raise
            self.instead = f"{error}; going on with plan {remembered.serial}"
            return remembered

    def changed(self) -> bool:
        """Whether the file is another one than at the last look. A file that is away is not."""
        try:
            content = self._content()
        except ConfigError:
            return False
        return content != self._seen

    def read(self, policy: Policy) -> AgentPlan:
        """The plan, if it may be carried out here and now.

        Raises ConfigError for a file that cannot be read, PlanRefusedError with the reason, and
        SpoolError where what was taken before cannot be recalled or this one not be remembered.
        """
        self._seen = content = self._content()
        if self.path.suffix == CAMPAIGN:
            return self._of_campaign(policy)
        return self._admission.admitted(content, policy)

    def remembered(self, policy: Policy) -> AgentPlan | None:
        """The plan that was taken last, if it may still be carried out."""
        return None if self.path.suffix == CAMPAIGN else self._admission.remembered(policy)

    def _content(self) -> bytes:
        try:
            with self.path.open("rb") as file:
                return file.read(LARGEST_PLAN + 1)
        except OSError as error:
            problem = f"cannot be read: {error.strerror}"
            raise ConfigError([Fault(str(self.path), "", problem, "a plan")]) from None

    def _trusted(self) -> Mapping[str, PublicKey]:
        if self._trust is None:
            fault = Fault(str(self.path), "", "is a signed plan", "--trust with public keys")
            raise ConfigError([fault])
        return read_trusted(self._trust)

    def _of_campaign(self, policy: Policy) -> AgentPlan:
        now = self._now()
        plans = agent_plans(
            self.path, probe_table(), issued_unix_ns=now, lifetime_ns=WITHOUT_END_NS
        )
        if self._agent not in plans and (self._agent or len(plans) != 1):
            problem = f"has no vantage {self._agent!r}" if self._agent else "has several vantages"
            expected = f"--agent with one of: {', '.join(plans)}"
            raise ConfigError([Fault(str(self.path), "vantage", problem, expected)])
        plan = plans[self._agent or next(iter(plans))]
        if refusals := policy.refusals(plan):
            raise PlanRefusedError(RefusalReason.OUT_OF_POLICY, "; ".join(refusals))
        return plan
