"""Certified search, and the automatic choice (theory B6): stop when what is released anyway is a proof.

The mechanism answers for its certificate (`expost.stopping.certificates`); nothing is paid for testing the risk.
"""

from __future__ import annotations

from expost.search.methods.tested import GRADIENTS_CHARGED, RiskTested
from expost.search.moment_risk import risk_at_delta
from expost.search.request import Method, Plan, Request


class Certified(Method):
    """Stop by a proof computed from what is released anyway."""

    name = "certified"
    charged = GRADIENTS_CHARGED

    def settle(self, request: Request, excess_risk: float) -> Plan:
        """Leave it to the mechanism; with a δ, certificates are those of Gaussian moments."""
        if request.delta:
            return risk_at_delta(request, excess_risk, tested=False)
        return request.mechanism.certificate(request, excess_risk, automatic=False)


class Automatic(Method):
    """The cheapest applicable way to a proof, chosen without looking at the data."""

    name = "auto"
    charged = GRADIENTS_CHARGED

    def settle(self, request: Request, excess_risk: float) -> Plan:
        """Take the certificate where there is one, the test of the risk elsewhere."""
        if request.delta:
            return risk_at_delta(request, excess_risk, tested=None)
        if request.mechanism.can_certify(request.problem):
            return request.mechanism.certificate(request, excess_risk, automatic=True)
        return RiskTested().settle(request, excess_risk)
