"""What a memory asks of its model and its encoder, by phase."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from memlab.llm.response_bodies import JsonValue

WRITING, SEARCHING = "writing", "searching"


@dataclass
class PhaseCounts:
    """Of one phase.

    :param calls: answered questions to the model.
    :param read: tokens of the prompts; ``written``: of the answers.
    :param estimated: how many of the calls have tokens that are counted by characters.
    :param seconds: until the answers of the model were there, summed; near 0 for recorded ones.
    :param refused: calls that are not in the recording, or that the service did not answer.
    :param embedded: texts that were encoded.
    :param texts: characters of these.
    :param asked: names of the distinct prompts; ``answered``: of those that had an answer.
    :param refusals: why a prompt had none, by its name.
    """

    calls: int = 0
    read: int = 0
    written: int = 0
    estimated: int = 0
    seconds: float = 0.0
    refused: int = 0
    embedded: int = 0
    texts: int = 0
    asked: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    refusals: dict[str, str] = field(default_factory=dict)

    def describe(
        self, input_price: float | None, output_price: float | None
    ) -> dict[str, JsonValue]:
        """Give the counts, and the price where both prices of a million tokens are known.

        >>> PhaseCounts(calls=1, read=2_000_000).describe(0.5, 1.0)["price"]
        1.0
        """
        price = None
        if input_price is not None and output_price is not None:
            price = (self.read * input_price + self.written * output_price) / 1e6
        counts = asdict(self)
        for field_name in ("asked", "answered", "refusals"):
            del counts[field_name]
        return {**counts, "seconds": round(self.seconds, 3), "price": price}

    def unanswered(self) -> dict[str, str]:
        """Give why the prompts that never had an answer had none, by their names."""
        return {
            request_key: refusal_text
            for request_key, refusal_text in self.refusals.items()
            if request_key not in self.answered
        }


@dataclass
class Counts:
    """Counts of all phases, and what was wanted that is not served."""

    phases: dict[str, PhaseCounts] = field(default_factory=dict)
    wanted: dict[str, int] = field(default_factory=dict)

    def get_or_add_counts_of_phase(self, phase: str) -> PhaseCounts:
        """Give the counts of a phase, which are 0 at first."""
        return self.phases.setdefault(phase, PhaseCounts())

    def count_unserved_address(self, address: str) -> None:
        """Count an address that was asked for and is not served."""
        self.wanted[address] = self.wanted.get(address, 0) + 1
