"""Orders of events: how far a stated order agrees with the one in which things happened."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from memlab.errors import DataError


def kendall_tau(stated: Sequence[Hashable], reference: Sequence[Hashable]) -> float:
    """Give Kendall's tau-b of a stated order against the right one: 1 for the same order, −1 for the reverse.

    Items of the reference that are not stated tie behind all that are; what is stated beyond it is left out. Nothing
    stated, or one item of several, says nothing of the order: 0.

    :param reference: at least two distinct items, the first event first.
    :raises DataError: when the reference has fewer, or an item stands twice.

    Source: Kendall, Biometrika 1945 (ties); BEAM (2025) judges its event orders so.

    >>> from memlab.evaluate import kendall_tau
    >>> kendall_tau(["a", "b", "c"], ["a", "b", "c"]), kendall_tau(["c", "b", "a"], ["a", "b", "c"])
    (1.0, -1.0)
    >>> round(kendall_tau(["a", "c"], ["a", "b", "c", "d"]), 3)
    0.548
    """
    from scipy.stats import kendalltau

    for order in (stated, reference):
        if len(set(order)) < len(order):
            raise DataError(f"the order {[*order]} names an item twice; expected each once")
    if len(reference) < 2:
        raise DataError(f"the reference {[*reference]} has fewer than two items; nothing to order")
    place = {item: n for n, item in enumerate(stated) if item in set(reference)}
    if len(place) < 2:
        return 0.0
    found = [place.get(item, len(stated)) for item in reference]
    return float(kendalltau(found, range(len(found))).statistic)
