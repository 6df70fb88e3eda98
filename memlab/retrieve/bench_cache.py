"""Benches of stores that were searched last, so that the next question finds them ready."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock

from memlab.retrieve.bench import Bench

MAX_TURNS = 100_000
"""Turns of all benches that are kept, some kilobytes each."""


@dataclass
class BenchCache:
    """The benches that were used last; safe to use from several threads.

    A bench serves while the tables that it was read from are in the state in which they were: what
    this process or another one writes makes it be read again.

    :param max_turns: turns of all benches together; the one that was used last stays though it has
        more.
    """

    max_turns: int = MAX_TURNS
    _kept: OrderedDict[Hashable, tuple[Hashable, Bench]] = field(
        default_factory=OrderedDict, init=False, repr=False
    )
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def get_or_make(
        self, bench_key: Hashable, tables_state: Hashable, make_bench: Callable[[], Bench]
    ) -> Bench:
        """Give the bench of a key, made anew where there is none for a state.

        :param bench_key: store, dataset, scope and encoder.
        :param tables_state: of the store's tables, as it was asked for before this call: what is
            written while a bench is made then makes the next call read it again.

        >>> from memlab import retrieve, sample
        >>> from memlab.retrieve.bench_cache import BenchCache
        >>> cache = BenchCache()
        >>> def make():
        ...     return retrieve.Bench.of(sample(turns=20), encoder=None)
        >>> first = cache.get_or_make("sample", 1, make)
        >>> cache.get_or_make("sample", 1, make) is first
        True
        >>> cache.get_or_make("sample", 2, make) is first
        False
        """
        with self._lock:
            # One of another state is let go of before another is made: two of a large scope take
            # twice the memory.
            known_state, bench = self._kept.pop(bench_key, (None, None))
            if bench is not None and known_state == tables_state:
                self._kept[bench_key] = tables_state, bench
                return bench
        bench = None
        bench = make_bench()
        with self._lock:
            self._kept[bench_key] = tables_state, bench
            self._drop_oldest_beyond_max_turns()
        return bench

    def _drop_oldest_beyond_max_turns(self) -> None:
        n_turns = 0
        for _, bench in self._kept.values():
            n_turns += bench.turns.height
        while n_turns > self.max_turns:
            if len(self._kept) == 1:
                break
            _, (_, dropped_bench) = self._kept.popitem(last=False)
            n_turns -= dropped_bench.turns.height
