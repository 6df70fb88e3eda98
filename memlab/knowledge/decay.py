"""Decay curves: what share of facts is still true so long after they were last accessed.

Every family is a frozen dataclass whose ``retention`` takes arrays of ages in days, from 0, and gives arrays in [0, 1],
never rising with age. All but the plateau are given by their half-life, so that half-life and shape are nearly
independent when they are fitted.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import ConfigDict

from memlab.errors import DataError


class Parameter(NamedTuple):
    """A parameter, and the bounds between which it is sought when it is fitted; ``log``: on a logarithmic scale."""

    name: str
    low: float
    high: float
    log: bool = True


_PARAMETERS = {
    p.name: p
    for p in (
        Parameter("half_life_days", 0.1, 36_500), Parameter("plateau_days", 0.01, 3_650),
        Parameter("end_days", 0.1, 36_500), Parameter("floor", 0.0, 0.999, log=False), Parameter("exponent", 0.05, 50),
        Parameter("shape", 0.05, 20), Parameter("slope", 0.05, 20), Parameter("decay", 0.05, 5),
    )
}  # fmt: skip


class Accesses(NamedTuple):
    """Every access to every fact, flat.

    :param row: (m,) the fact of each access, from 0.
    :param age_days: (m,) how long ago it was.
    """

    row: np.ndarray
    age_days: np.ndarray


class Curve:
    """What the families share: checked parameters, and a ``family``, their name in settings and figures.

    Each has ``retention(age_days, accesses)``: (n,) days since the last access → (n,) shares. Without ``accesses``
    there is one, the last; base-level activation alone reads them.

    :raises DataError: for a parameter that is not above 0 (floor: not in [0, 1]; plateau: below 0).
    """

    family: str
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    def __post_init__(self) -> None:
        for name, value in parameters(self).items():  # type: ignore[arg-type]
            fine = 0 <= value <= 1 if name == "floor" else value >= 0 if name == "plateau_days" else value > 0
            if not (fine and np.isfinite(value)):
                raise DataError(f"{name} of {self.family} is {value}; give a number above 0 (a floor: from 0 to 1)")


@dataclass(frozen=True)
class PlateauLinear(Curve):
    """1 on a plateau, then a straight line down to a floor: the default.

    :param plateau_days: how long nothing is lost.
    :param end_days: when the floor is reached.
    :param floor: what is left from then on.

    >>> import numpy as np
    >>> from memlab.knowledge.decay import PlateauLinear
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
            raise DataError(f"end_days is {self.end_days:g}; it must come after plateau_days, {self.plateau_days:g}")

    def retention(self, age_days: np.ndarray, accesses: Accesses | None = None) -> np.ndarray:
        past = (age_days - self.plateau_days) / (self.end_days - self.plateau_days)
        return 1.0 - (1.0 - self.floor) * np.clip(past, 0.0, 1.0)


@dataclass(frozen=True)
class Exponential(Curve):
    """2^(−age / half-life): the same share is lost every day, whatever the age.

    Source: Ebbinghaus, Über das Gedächtnis (1885); as a survival function it is the constant hazard.

    >>> import numpy as np
    >>> from memlab.knowledge.decay import Exponential
    >>> Exponential(half_life_days=100).retention(np.array([0.0, 100.0, 200.0])).tolist()
    [1.0, 0.5, 0.25]
    """

    half_life_days: float = 365.0
    family: Literal["exponential"] = "exponential"

    def retention(self, age_days: np.ndarray, accesses: Accesses | None = None) -> np.ndarray:
        return np.exp2(-age_days / self.half_life_days)


@dataclass(frozen=True)
class PowerLaw(Curve):
    """(1 + age / scale)^(−exponent), with scale = half-life / (2^(1/exponent) − 1): what is old hardly ages any more.

    As the exponent grows the curve becomes the exponential one, so a large exponent is never known well.

    Source: Wickelgren, Single-trace fragility theory of memory dynamics (Memory & Cognition 1974); Wixted and Ebbesen,
    On the form of forgetting (Psychological Science 1991).

    >>> import numpy as np
    >>> from memlab.knowledge.decay import PowerLaw
    >>> PowerLaw(half_life_days=100, exponent=1).retention(np.array([0.0, 100.0, 300.0])).tolist()
    [1.0, 0.5, 0.25]
    """

    half_life_days: float = 365.0
    exponent: float = 0.5
    family: Literal["power_law"] = "power_law"

    def retention(self, age_days: np.ndarray, accesses: Accesses | None = None) -> np.ndarray:
        grown = age_days / self.half_life_days * np.expm1(np.log(2) / self.exponent)
        return np.exp(-self.exponent * np.log1p(grown))


@dataclass(frozen=True)
class Weibull(Curve):
    """2^(−(age / half-life)^shape): a shape above 1 wears out with age, below 1 the young die first, 1 is exponential.

    Source: Weibull, A statistical distribution function of wide applicability (J. Appl. Mech. 1951).

    >>> import numpy as np
    >>> from memlab.knowledge.decay import Weibull
    >>> Weibull(half_life_days=100, shape=2).retention(np.array([0.0, 100.0, 200.0])).tolist()
    [1.0, 0.5, 0.0625]
    """

    half_life_days: float = 365.0
    shape: float = 1.5
    family: Literal["weibull"] = "weibull"

    def retention(self, age_days: np.ndarray, accesses: Accesses | None = None) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.exp2(-((age_days / self.half_life_days) ** self.shape))


@dataclass(frozen=True)
class BaseLevel(Curve):
    """Base-level activation over all accesses, squashed by the logistic: often and lately used facts stay.

    ACT-R's activation is A = ln Σ age^(−decay), and its chance of retrieval logistic((A − threshold) / noise). From
    facts that were accessed once the three are not known apart, only decay / noise and threshold / decay. So what is
    left is logistic(slope / decay · ln Σ (age / half-life)^(−decay)).

    :param half_life_days: the age at which half is left of a fact that was accessed once.
    :param slope: the log-odds lost as the logarithm of the age grows by 1.
    :param decay: how little older accesses count beside the last; ACT-R takes 0.5.

    Source: Anderson and Schooler, Reflections of the environment in memory (Psychological Science 1991).

    >>> import numpy as np
    >>> from memlab.knowledge.decay import Accesses, BaseLevel
    >>> twice = Accesses(np.array([0, 1, 1]), np.array([100.0, 100.0, 100.0]))
    >>> BaseLevel(half_life_days=100).retention(np.array([100.0, 100.0]), twice).round(3).tolist()
    [0.5, 0.8]
    """

    half_life_days: float = 365.0
    slope: float = 1.0
    decay: float = 0.5
    family: Literal["base_level"] = "base_level"

    def retention(self, age_days: np.ndarray, accesses: Accesses | None = None) -> np.ndarray:
        row, each = (np.arange(len(age_days)), age_days) if accesses is None else accesses
        # The age of 0 is certain: its power is infinite, and the logistic of infinity is 1.
        with np.errstate(divide="ignore", over="ignore"):
            strength = (each / self.half_life_days) ** -self.decay
            total = np.bincount(row, weights=strength, minlength=len(age_days))
            return 1.0 / (1.0 + np.exp(-self.slope / self.decay * np.log(total)))


AnyCurve = PlateauLinear | Exponential | PowerLaw | Weibull | BaseLevel
FAMILIES: dict[str, type[AnyCurve]] = {
    kind.family: kind for kind in (PlateauLinear, Exponential, PowerLaw, Weibull, BaseLevel)
}
SPACE = {name: [_PARAMETERS[f.name] for f in fields(kind) if f.name != "family"] for name, kind in FAMILIES.items()}
"""The parameters of each family."""


def family(name: str) -> type[AnyCurve]:
    """Look up a family by its name.

    :raises DataError: for a name that is none.
    """
    if name not in FAMILIES:
        raise DataError(f"{name!r} is no decay family; there are {', '.join(FAMILIES)}")
    return FAMILIES[name]


def parameters(curve: AnyCurve) -> dict[str, Any]:
    """Give a curve's parameters by name.

    >>> from memlab.knowledge.decay import Weibull, parameters
    >>> parameters(Weibull(100, shape=2))
    {'half_life_days': 100.0, 'shape': 2.0}
    """
    return {name: float(value) for name, value in asdict(curve).items() if name != "family"}
