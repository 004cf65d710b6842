"""What a search at a δ on few rows would have cost on many; public.

At one level of noise on a mean gradient or a shortfall, ρ of Gaussian noise is in proportion to 1/n², and pure losses
and Jacobians are to 1/n. A curve is taken apart by its two highest orders, where pure losses no longer grow.
"""

from __future__ import annotations

from expost.privacy.renyi import ORDERS, Curve


def rescaled(curve: Curve, times: float) -> Curve:
    """Return the curve for rows of that many times the weight.

    Examples
    --------
    >>> both = rescaled(Curve.gaussian(1e-4) + Curve.pure(0.02), 0.5)
    >>> expected = Curve.gaussian(2.5e-5) + Curve.ex_post(0.01)
    >>> bool(abs(both.epsilon(1e-6) - expected.epsilon(1e-6)) < 1e-6)
    True
    """
    (low, high), (less, more) = ORDERS[-2:], curve.losses[-2:]
    rho = (more - less) / (high - low)
    return Curve.gaussian(rho * times**2) + Curve.ex_post(max(0.0, more - high * rho) * times)
