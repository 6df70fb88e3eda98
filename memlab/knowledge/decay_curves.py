"""Decay curves: the share of facts that are still true at an age, the time since they were last
stated.

Every family is a frozen dataclass whose ``retention`` takes (n,) ages in days, from 0, and gives
(n,) shares in [0, 1], never rising with age. All but the plateau are given by their half-life, so
that half-life and shape are nearly independent when they are fitted.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import ConfigDict

from memlab.errors import DataError

BOUNDS = {
    "half_life_days": (0.1, 36_500.0),
    "plateau_days": (0.01, 3_650.0),
    "end_days": (0.1, 36_500.0),
    "floor": (0.0, 0.999),
    "exponent": (0.05, 50.0),
    "shape": (0.05, 20.0),
    "slope": (0.05, 20.0),
}
"""The range of each parameter in a fit; all but the floor are searched on a logarithmic scale."""

_LARGEST_LOGARITHM = 700.0
"""Of a number that a float can hold, about."""


def _is_allowed_parameter(parameter_name: str, value: float) -> bool:
    """Tell whether a parameter of a curve is in the range that its name allows."""
    if parameter_name == "floor":
        return 0 <= value <= 1
    if parameter_name == "plateau_days":
        return value >= 0
    return value > 0


class Curve:
    """Base of the families: checked parameters, and ``family``, the name in settings and figures.

    :raises DataError: for a parameter that is not above 0 (floor: not in [0, 1]; plateau: below 0).
    """

    family: str
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    def __post_init__(self) -> None:
        for name, value in self.parameters.items():
            if not (_is_allowed_parameter(name, value) and np.isfinite(value)):
                raise DataError(
                    f"{name} of {self.family} is {value}; give a number above 0 (a floor: from 0 "
                    "to 1)"
                )

    @property
    def parameters(self) -> dict[str, float]:
        """Its parameters by name.

        >>> from memlab.knowledge.decay_curves import Weibull
        >>> Weibull(100, shape=2).parameters
        {'half_life_days': 100.0, 'shape': 2.0}
        """
        curve_fields: Any = fields(self)  # type: ignore[arg-type]
        return {
            curve_field.name: float(getattr(self, curve_field.name))
            for curve_field in curve_fields
            if curve_field.name != "family"
        }


@dataclass(frozen=True)
class PlateauLinear(Curve):
    """1 on a plateau, then a straight line down to a floor: the default.

    :param plateau_days: how long nothing is lost.
    :param end_days: when the floor is reached.
    :param floor: what is left from then on.

    >>> import numpy as np
    >>> from memlab.knowledge.decay_curves import PlateauLinear
    >>> PlateauLinear().retention(np.array([0.0, 30.0, 197.5, 365.0, 9000.0])).tolist()
    [1.0, 1.0, 0.75, 0.5, 0.5]
    """

    plateau_days: float = 30.0
    end_days: float = 365.0
    floor: float = 0.5
    family: Literal["plateau_linear"] = "plateau_linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.end_days <= self.plateau_days:
            raise DataError(
                f"end_days is {self.end_days:g}; it must come after plateau_days, "
                f"{self.plateau_days:g}"
            )

    def retention(self, age_days: np.ndarray) -> np.ndarray:
        share_of_slope = (age_days - self.plateau_days) / (self.end_days - self.plateau_days)
        return 1.0 - (1.0 - self.floor) * np.clip(share_of_slope, 0.0, 1.0)


@dataclass(frozen=True)
class Exponential(Curve):
    """2^(−age / half-life): the same share is lost every day, whatever the age.

    Source: Ebbinghaus, Über das Gedächtnis (1885); as a survival function it is the constant
    hazard.

    >>> import numpy as np
    >>> from memlab.knowledge.decay_curves import Exponential
    >>> Exponential(half_life_days=100).retention(np.array([0.0, 100.0, 200.0])).tolist()
    [1.0, 0.5, 0.25]
    """

    half_life_days: float = 365.0
    family: Literal["exponential"] = "exponential"

    def retention(self, age_days: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.exp2(-age_days / self.half_life_days)


@dataclass(frozen=True)
class PowerLaw(Curve):
    """(1 + age / scale)^(−exponent), with scale = half-life / (2^(1/exponent) − 1): what is old
    hardly ages any more.

    As the exponent grows the curve becomes the exponential one, so a large exponent is never known
    well.

    Source: Wickelgren, Single-trace fragility theory of memory dynamics (Memory & Cognition 1974);
    Wixted and Ebbesen, On the form of forgetting (Psychological Science 1991).

    >>> import numpy as np
    >>> from memlab.knowledge.decay_curves import PowerLaw
    >>> PowerLaw(half_life_days=100, exponent=1).retention(np.array([0.0, 100.0, 300.0])).tolist()
    [1.0, 0.5, 0.25]
    """

    half_life_days: float = 365.0
    exponent: float = 0.5
    family: Literal["power_law"] = "power_law"

    def retention(self, age_days: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", divide="ignore"):
            relative_age = age_days / self.half_life_days
            if np.log(2) / self.exponent > _LARGEST_LOGARITHM:
                # 1/scale is beyond a float, and 1 nothing beside it where age is not 0.
                return np.exp(-np.maximum(0.0, np.log(2) + self.exponent * np.log(relative_age)))
            scaled_age = relative_age * np.expm1(np.log(2) / self.exponent)
            return np.exp(-self.exponent * np.log1p(scaled_age))


@dataclass(frozen=True)
class Weibull(Curve):
    """2^(−(age / half-life)^shape): a shape above 1 wears out with age, below 1 the young die
    first, 1 is exponential.

    Source: Weibull, A statistical distribution function of wide applicability (J. Appl. Mech.
    1951).

    >>> import numpy as np
    >>> from memlab.knowledge.decay_curves import Weibull
    >>> Weibull(half_life_days=100, shape=2).retention(np.array([0.0, 100.0, 200.0])).tolist()
    [1.0, 0.5, 0.0625]
    """

    half_life_days: float = 365.0
    shape: float = 1.5
    family: Literal["weibull"] = "weibull"

    def retention(self, age_days: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.exp2(-((age_days / self.half_life_days) ** self.shape))


@dataclass(frozen=True)
class BaseLevel(Curve):
    """1 / (1 + (age / half-life)^slope): base-level activation since the last access, squashed by
    the logistic.

    ACT-R's activation falls as −decay · ln age, and its chance of retrieval is logistic((activation
    − threshold) / noise): of one access, only these two numbers of the four are known. Repetitions
    raise the reinforcement of a fact, and are not counted a second time here. As a survival
    function it is the log-logistic.

    :param half_life_days: the age at which half is left.
    :param slope: the log-odds lost as the logarithm of the age grows by 1.

    Source: Anderson and Schooler, Reflections of the environment in memory (Psychological Science
    1991).

    >>> import numpy as np
    >>> from memlab.knowledge.decay_curves import BaseLevel
    >>> BaseLevel(half_life_days=100, slope=2).retention(np.array([0.0, 100.0, 200.0])).tolist()
    [1.0, 0.5, 0.2]
    """

    half_life_days: float = 365.0
    slope: float = 1.0
    family: Literal["base_level"] = "base_level"

    def retention(self, age_days: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return 1.0 / (1.0 + (age_days / self.half_life_days) ** self.slope)


AnyCurve = PlateauLinear | Exponential | PowerLaw | Weibull | BaseLevel
FAMILIES: dict[str, type[AnyCurve]] = {
    kind.family: kind for kind in (PlateauLinear, Exponential, PowerLaw, Weibull, BaseLevel)
}
