"""What an answer says that is nothing without its question: "Where do you live now?" "Bergen"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memlab.knowledge._attributes import Talk, value_of
from memlab.knowledge._patterns import P, W
from memlab.knowledge._phrase import Statement, nominal, verb_phrase
from memlab.knowledge._relations import told
from memlab.language.casual import written
from memlab.language.clauses import normal

_LONGEST = 14


def replied(question: str, answer: str, talk: Talk) -> Iterator[Statement]:
    """Read the first sentence of an answer with the question of another that it answers.

    >>> from memlab.knowledge._attributes import Talk
    >>> from memlab.knowledge._replies import replied
    >>> list(replied("where do you live now?", "Bergen! since May", Talk("Nora")))
    [Statement(subject='Nora', predicate='lives in', object='Bergen')]
    """
    question, answer = (normal(written(text)).strip() for text in (question, answer))
    me = talk.speaker
    if not answer or len(answer.split()) > _LONGEST:
        return
    yes, no = P["yes"].match(answer), P["no"].match(answer)
    content = P["no"].sub("", P["yes"].sub("", answer))
    for asked, predicate in (("where_home", "lives in"), ("where_work", "works at"), ("subject", "studies")):
        if P[asked].search(question):
            value = re.sub(r"^(?:in|at|near|on)\s+", "", nominal(content, most=5), flags=re.I)
            if value and not P["no_place"].match(value):
                yield Statement(me, predicate, value)
            return
    if (who := P["who"].search(question)) and (name := P["a_name"].match(content)):
        yield Statement(f"{me}'s {re.sub('^(?:new|current) ', '', who['role'].lower())}", "is", name["who"])
    elif (what := P["what"].search(question)) and (code := value_of(what["name"], content)):
        yield Statement(f"{me}'s {what['name'].lower()}", "is", code)
    elif (whether := P["whether"].match(question)) and (yes or no) and not P["goes_on"].match(content):
        verb = verb_phrase(P["elided"].sub("are ", whether["rest"]))
        if verb and verb.text.split()[0] in W["verbs"] and not verb.negated:
            yield from told(me, verb._replace(negated="not") if no else verb, False)
