"""Questions with evidence, proposed by a language model over conversations that have none, and
checked.

Conversations come in, questions with their evidence go out (:func:`propose_questions`, also
``memlab.datasets.propose_questions``). ``question_kinds`` says what kinds there are,
``message_bundles`` gathers messages that belong together, ``proposal_prompts`` asks,
``proposal_screening`` drops what is wrong by itself, ``evidence_checks`` asks again, and
``proposing`` does all of it in this order.
"""

from memlab.errors import explain_arguments
from memlab.questions.proposing import ProposedSet, propose_questions

__all__ = ["ProposedSet", "propose_questions"]

explain_arguments(globals())
