"""Decay curves: what share of facts is still to be believed so long after they were last accessed.

Every family is a frozen dataclass with ``retention``: arrays of ages in days in, arrays in [0, 1] out. All but the
plateau are given by their half-life, the age at which half is left, so that they can be compared at a glance and
fitted well: half-life and shape are nearly independent of each other, scale and shape are not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import polars as pl
from pydantic import ConfigDict

from memlab.errors import DataError


class Parameter(NamedTuple):
    """A parameter: it may be from ``least`` to ``most``, and is sought from ``low`` to ``high`` when it is fitted."""

    name: str
    least: float
    most: float
    low: float
    high: float
    log: bool = True

    def scaled(self, value: float) -> float:
        """Give a value as it is sought: its logarithm, where the scale is logarithmic."""
        return float(np.log(value)) if self.log else float(value)

    def value(self, scaled: float) -> float:
        """Give the value of a place in the search."""
        return float(np.clip(np.exp(scaled) if self.log else scaled, self.low, self.high))


_PARAMETERS = [
    Parameter("half_life_days", np.nextafter(0, 1), np.inf, 0.1, 36_500),
    Parameter("plateau_days", 0, np.inf, 0.01, 3_650),
    Parameter("end_days", 0, np.inf, 0.1, 36_500),
    Parameter("floor", 0, 1, 0.0, 0.999, log=False),
    Parameter("exponent", 0.01, 1000, 0.05, 50),
    Parameter("shape", 0.01, 100, 0.05, 20),
    Parameter("slope", 0.01, 100, 0.05, 20),
    Parameter("decay", 0.01, 20, 0.05, 5),
]


class Accesses(NamedTuple):
    """Every access to every fact, flat.

    :param row: (m,) the fact of each access, from 0.
    :param age_days: (m,) how long ago it was.
    """

    row: np.ndarray
    age_days: np.ndarray

    @classmethod
    def of(cls, ages: Sequence[Sequence[float]] | pl.Series, last: np.ndarray | float = 0.0) -> Accesses:
        """Flatten a list of ages for each fact; one without a list was accessed once, ``last`` days ago.

        >>> from memlab.knowledge.decay import Accesses
        >>> Accesses.of([[3.0], [9.0, 2.0]]).row.tolist()
        [0, 1, 1]
        """
        lists = pl.DataFrame({"age": pl.Series(ages, dtype=pl.List(pl.Float64))}).with_columns(last=last)
        flat = lists.with_row_index("row").explode("age", empty_as_null=True)
        return cls(flat["row"].cast(pl.Int64).to_numpy(), flat["age"].fill_null(flat["last"]).to_numpy())


class Curve(ABC):
    """What the families share; each has a ``family``, its name in settings and figures, and its parameters as fields.

    :raises DataError: for a parameter out of range.
    """

    family: str
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    def __post_init__(self) -> None:
        for name, low, high, *_ in _PARAMETERS:
            value: Any = getattr(self, name, low)
            if np.isfinite(value) and low <= value <= high:
                continue
            span = f"from {low:g} to {high:g}" if np.isfinite(high) else f"of at least {low:g}"
            wanted = "days above 0" if name == "half_life_days" else f"a number {span}"
            raise DataError(f"{name} of {self.family} is {value}; give {wanted}")

    def retention(self, age_days: np.ndarray, accesses: Accesses | None = None) -> np.ndarray:
        """Give the share left, in [0, 1], never rising with age.

        :param age_days: (n,) days since the last access; below 0: 0.
        :param accesses: all accesses; without them there is one, the last. Base-level activation alone reads them.
        """
        return self._left(_days(age_days), accesses)

    @abstractmethod
    def _left(self, age: np.ndarray, accesses: Accesses | None) -> np.ndarray: ...


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
            raise DataError(
                f"end_days is {self.end_days:g}; it must come after the plateau of plateau_days {self.plateau_days:g}"
            )

    def _left(self, age: np.ndarray, accesses: Accesses | None) -> np.ndarray:
        past = (age - self.plateau_days) / (self.end_days - self.plateau_days)
        return 1.0 - (1.0 - self.floor) * np.clip(past, 0.0, 1.0)


@dataclass(frozen=True)
class Exponential(Curve):
    """2^(−age / half-life): the same share is lost every day, whatever the age.

    Source: Ebbinghaus, Über das Gedächtnis (1885), tried it first; as a survival function it is the constant hazard.

    >>> import numpy as np
    >>> from memlab.knowledge.decay import Exponential
    >>> Exponential(half_life_days=100).retention(np.array([0.0, 100.0, 200.0])).tolist()
    [1.0, 0.5, 0.25]
    """

    half_life_days: float = 365.0
    family: Literal["exponential"] = "exponential"

    def _left(self, age: np.ndarray, accesses: Accesses | None) -> np.ndarray:
        return np.exp2(-age / self.half_life_days)


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

    def _left(self, age: np.ndarray, accesses: Accesses | None) -> np.ndarray:
        grown = age / self.half_life_days * np.expm1(np.log(2) / self.exponent)
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

    def _left(self, age: np.ndarray, accesses: Accesses | None) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.exp2(-((age / self.half_life_days) ** self.shape))


@dataclass(frozen=True)
class BaseLevel(Curve):
    """Base-level activation over all accesses, squashed by the logistic: often and lately used facts stay.

    ACT-R's activation is A = ln Σ age^(−decay), and its chance of retrieval is logistic((A − threshold) / noise). The
    three are not known apart from facts that were accessed once, which only show decay / noise and threshold / decay.
    So the parameters are those: the half-life after one access, exp(−threshold / decay), and slope = decay / noise;
    what is left is logistic(slope / decay · ln Σ (age / half-life)^(−decay)).

    :param half_life_days: the age at which half is left of a fact that was accessed once.
    :param slope: the log-odds lost as the logarithm of the age grows by 1.
    :param decay: how little older accesses count beside the last; ACT-R takes 0.5.

    Source: Anderson and Schooler, Reflections of the environment in memory (Psychological Science 1991); Petrov,
    Computationally efficient approximation of the base-level learning equation in ACT-R (ICCM 2006).

    >>> import numpy as np
    >>> from memlab.knowledge.decay import Accesses, BaseLevel
    >>> curve, age = BaseLevel(half_life_days=100), np.array([100.0, 100.0])
    >>> curve.retention(age, Accesses.of([[100.0], [100.0, 100.0]])).round(3).tolist()
    [0.5, 0.8]
    """

    half_life_days: float = 365.0
    slope: float = 1.0
    decay: float = 0.5
    family: Literal["base_level"] = "base_level"

    def _left(self, age: np.ndarray, accesses: Accesses | None) -> np.ndarray:
        row, each = (np.arange(len(age)), age) if accesses is None else (accesses.row, _days(accesses.age_days))
        # The age of 0 is certain: its power is infinite, and the logistic of infinity is 1.
        with np.errstate(divide="ignore", over="ignore"):
            strength = (each / self.half_life_days) ** -self.decay
            total = np.bincount(row, weights=strength, minlength=len(age))
            return 1.0 / (1.0 + np.exp(-self.slope / self.decay * np.log(total)))


AnyCurve = PlateauLinear | Exponential | PowerLaw | Weibull | BaseLevel
_KINDS: tuple[type[AnyCurve], ...] = (PlateauLinear, Exponential, PowerLaw, Weibull, BaseLevel)
FAMILIES: dict[str, type[AnyCurve]] = {kind.family: kind for kind in _KINDS}
SPACE = {name: [p for p in _PARAMETERS if hasattr(kind, p.name)] for name, kind in FAMILIES.items()}
"""The parameters of each family."""


def family(name: str) -> type[AnyCurve]:
    """Look up a family by its name.

    :raises DataError: for a name that is none.
    """
    try:
        return FAMILIES[name]
    except KeyError:
        raise DataError(f"{name!r} is no decay family; there are {', '.join(FAMILIES)}") from None


def parameters(curve: AnyCurve) -> dict[str, float]:
    """Give a curve's parameters by name.

    >>> from memlab.knowledge.decay import Weibull, parameters
    >>> parameters(Weibull(100, shape=2))
    {'half_life_days': 100, 'shape': 2}
    """
    return {name: value for name, value in asdict(curve).items() if name != "family"}


def _days(age_days: np.ndarray) -> np.ndarray:
    age = np.asarray(age_days, dtype=np.float64)
    if np.isnan(age).any():
        raise DataError(f"age {int(np.isnan(age).argmax())} of {age.size} is not a number; give days since the access")
    return np.maximum(age, 0.0)
