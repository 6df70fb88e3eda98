"""What an answer says that is nothing without its question: "Where do you live now?" "Bergen"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memlab.knowledge._attributes import Talk, value_of
from memlab.knowledge._patterns import P, W
from memlab.knowledge._phrase import IT, Statement, nominal, verb_phrase
from memlab.knowledge._reading import SHARED, told
from memlab.language.casual import written
from memlab.language.clauses import normal

_VERBS = W["verbs"]


def replied(questions: list[tuple[str, str, bool]], answer: str, talk: Talk) -> Iterator[Statement]:
    """Read the first sentence of an answer with the question that it answers.

    :param questions: the latest ones, each with who asked it, and whether nobody has answered it.

    >>> from memlab.knowledge._reading import Talk
    >>> from memlab.knowledge._replies import replied
    >>> list(replied([("Tess", "where do you live now?", True)], "Bergen! since May", Talk("Nora")))
    [Statement(subject='Nora', predicate='lives in', object='Bergen')]
    """
    others = [question for asker, question, fresh in questions if asker != talk.speaker and fresh]
    own = [question for asker, question, _ in questions if asker == talk.speaker]
    if not others:
        return
    question = normal(written(others[-1])).strip()
    if own and re.fullmatch(r"(?:who|what) is (?:it|that)\W*", question, re.I):
        # "Who is my boss?" "I do not know. Who is it?" "Ann."
        question = normal(written(own[-1])).strip()
    answer = normal(written(answer)).strip()
    me = talk.speaker
    if not answer or len(answer.split()) > 14:
        return
    content = P["no"].sub("", P["yes"].sub("", answer))
    value = nominal(content, most=5)
    for pattern, predicate in ((P["where_home"], "lives in"), (P["where_work"], "works at"), (P["subject"], "studies")):
        if pattern.search(question):
            value = re.sub(r"^(?:in|at|near|on)\s+", "", value, flags=re.I)
            if value and not re.match(r"(?:i|we|you|he|she|they|why|well|still|no|yes)\b", value, re.I):
                yield Statement(me, predicate, value)
            return
    if (who := P["who"].search(question)) and (
        name := re.match(r"^(?:a |it's |it is )?(?P<who>[A-ZÀ-Þ][\w'-]+(?:\s+[A-ZÀ-Þ][\w'-]+)?)\b", content)
    ):
        role = re.sub(r"^(?:new|current) ", "", who["role"].lower())
        yield Statement(f"{me}'s {role}", "is", name["who"])
        return
    if (what := P["what"].search(question)) and (code := value_of(what["name"], content)):
        yield Statement(f"{me}'s {what['name'].lower()}", "is", code)
        return
    if (counted := P["counts"].match(question)) and (n := P["number"].match(answer)):
        named = counted["who"].lower()
        holder = talk.names.get(named, named.capitalize() if named in SHARED else f"{me}'s {named}")
        yield Statement(
            holder,
            {"take": "takes", "have": "has", "want": "wants", "eat": "eats", "drink": "drinks"}[
                counted["verb"].lower()
            ],
            f"{n['n'].lower()} {counted['noun']}",
        )
        return
    if (many := P["many"].search(question)) and (n := P["number"].match(answer)):
        if re.search(
            r"\b(?:are there|are you|do you|have you|you got|left|have we|are we|you have)\b|^\W*$", many["rest"], re.I
        ):
            yield Statement(IT, "now numbers", f"{n['n'].lower()} {many['noun']}")
        return
    if (whether := P["whether"].match(question)) and (P["yes"].match(answer) or P["no"].match(answer)):
        rest = whether["rest"]
        if re.match(r"(?:i|we|my|it|but)\b", content, re.I) or (
            P["yes"].match(answer) and re.search(r"\bany\b", rest, re.I)
        ):
            return
        first = rest.split()[0].lower()
        if first in ("allergic", "married", "single", "dating", "vegetarian", "vegan", "a", "in", "from", "on"):
            rest = f"are {rest}"
        verb = verb_phrase(re.sub(r"\b(?:a|any)\b(?= \w+)", "a", rest))
        if verb and verb.text.split()[0] in _VERBS and not verb.negated:
            if P["no"].match(answer):
                verb = verb._replace(negated="not", text=re.sub(r"\bany\s", "", verb.text, count=1))
            yield from told(me, verb, False)
