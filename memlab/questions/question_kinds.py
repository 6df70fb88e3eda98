"""The kinds of questions that are proposed: what each asks for, and how many of each a set has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class QuestionKind:
    """A kind of question.

    :param asks: what a prompt says of it.
    :param share: of a set, before it is scaled to 1: how often the sample has it, of 100.
    :param is_spread: whether its evidence stands in two sessions or more.
    :param needs_times: whether it can be asked only of messages with times.
    """

    asks: str
    share: int
    is_spread: bool = False
    needs_times: bool = False


KINDS: Mapping[str, QuestionKind] = MappingProxyType(
    {
        "counting": QuestionKind(
            "how many times something happened, or how many different ones there were; the answer "
            "is the number, then in brackets what is counted",
            15,
            is_spread=True,
        ),
        "listing": QuestionKind("which ones there were, all of them", 12, is_spread=True),
        "totals": QuestionKind(
            "a sum of amounts that different messages state; the answer is the sum, then in "
            "brackets its parts",
            9,
            is_spread=True,
        ),
        "changes": QuestionKind(
            "how something went on: what was planned or so at first, and what came of it",
            8,
            is_spread=True,
        ),
        "comparing": QuestionKind(
            "which of two or more is more, cheaper, earlier or longer, where each value stands in "
            "a message of its own",
            6,
            is_spread=True,
        ),
        "ordering": QuestionKind("in which order three or more things happened", 5, is_spread=True),
        "knowledge-update": QuestionKind(
            "what holds now, of something for which an earlier message states another value; "
            "evidence: what states the present value; stale: every message that states an older "
            "one",
            14,
        ),
        "temporal": QuestionKind(
            "on which date, how long, or how long between two things", 12, needs_times=True
        ),
        "single-session": QuestionKind(
            "a detail that one message states, or a few messages of one day", 12
        ),
        "abstention": QuestionKind(
            "something that the messages come close to and do not say, and that is asked as if "
            "they did; the answer says what is not known; evidence: none; distractors: the "
            "messages that come the closest",
            8,
        ),
    }
)

SPREAD_KINDS = frozenset(name for name, kind in KINDS.items() if kind.is_spread)
TIMED_KINDS = frozenset(name for name, kind in KINDS.items() if kind.needs_times)

PURPOSES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "theme": ("counting", "listing", "totals", "changes", "comparing", "ordering", "temporal"),
        "change": ("knowledge-update", "changes"),
        "session": ("single-session", "temporal"),
        "absent": ("abstention",),
    }
)
"""The kinds that each sort of bundle is asked for, see :mod:`memlab.questions.message_bundles`."""


def share_questions_by_kind(n_questions: int, kinds: Sequence[str]) -> dict[str, int]:
    """Share a number of questions out to kinds by largest remainders.

    >>> from memlab.questions.question_kinds import share_questions_by_kind
    >>> share_questions_by_kind(10, ["counting", "abstention"])
    {'counting': 7, 'abstention': 3}
    """
    return share_by_weight(n_questions, {kind: KINDS[kind].share for kind in kinds})


def share_by_weight(n_total: int, weight_by_name: Mapping[str, int]) -> dict[str, int]:
    """Share a number out by weights, by largest remainders; what stands first wins a tie.

    >>> from memlab.questions.question_kinds import share_by_weight
    >>> share_by_weight(3, {"a": 5, "b": 5})
    {'a': 2, 'b': 1}
    """
    total_weight = sum(weight_by_name.values())
    count_by_name = dict[str, int]()
    remainders = dict[str, int]()
    for kind_name, weight in weight_by_name.items():
        count_by_name[kind_name], remainders[kind_name] = divmod(n_total * weight, total_weight)
    by_remainder = sorted(remainders, key=remainders.__getitem__, reverse=True)
    for kind_name in by_remainder[: n_total - sum(count_by_name.values())]:
        count_by_name[kind_name] += 1
    return count_by_name
