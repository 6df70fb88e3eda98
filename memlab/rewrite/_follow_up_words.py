"""How people ask on: openings that name a thing, and the same questions with the thing left out."""

from __future__ import annotations

from typing import NamedTuple


class Talk(NamedTuple):
    """How one kind of synthetic event is asked about.

    :param opens: asks whether it happened, by name.
    :param lists: asks for all of them.
    :param amount: asks for its amount; ``{x}`` is the thing, or what stands for it.
    :param when: asks for its day.
    :param article: before its name.
    :param place: the preposition of a thing that one is *at* or *in*.
    :param pronoun: what stands for it.
    """

    opens: str
    lists: str
    amount: str
    when: str
    article: str = "the "
    place: str = ""
    pronoun: str = "it"

    def named(self, name: str) -> str:
        """Give the thing by its name."""
        return f"{self.place}{self.article}{name}"

    def pointed(self, words: str) -> str:
        """Give the thing by words that point at it."""
        return f"{self.place}{words}"


_BOUGHT = "When did I buy {x}?"
EVENTS = {
    "device": Talk(
        "Have I bought a {} for myself?", "Which electronics have I bought?", "How much did {x} cost?", _BOUGHT
    ),
    "gadget": Talk(
        "Did I get a {} for my kitchen?", "What did I buy for my kitchen?", "How much did {x} cost?", _BOUGHT
    ),
    "furniture": Talk(
        "Is the {} at my place one that I bought?", "What furniture have I bought?", "What did I pay for {x}?", _BOUGHT
    ),
    "repair": Talk(
        "Have I had someone in for the {}?",
        "Which repairs did I pay for at home?",
        "What was I charged for {x}?",
        "When did I have {x} seen to?",
    ),
    "carwork": Talk(
        "Did the garage do the {} on my car?",
        "What has been done on my car?",
        "What did I pay for {x}?",
        "When did I get {x} done?",
    ),
    "trip": Talk(
        "Have I been away to {}?",
        "Where have I travelled?",
        "How many nights was I {x}?",
        "When was I {x}?",
        "",
        "in ",
        "there",
    ),
    "book": Talk(
        "Have I read {}?", "Which books did I finish?", "How many pages does {x} have?", "When did I finish {x}?", ""
    ),
    "videogame": Talk(
        "Did I play {} to the end?",
        "Which games did I finish?",
        "How many hours did {x} keep me busy?",
        "When did I finish {x}?",
        "",
    ),
    "race": Talk(
        "Did I run in the {}?", "Which races did I run?", "How many kilometres was {x}?", "When did I run {x}?"
    ),
    "hike": Talk(
        "Have I walked {}?", "Which trails did I hike?", "How many miles was {x}?", "When did I hike {x}?", ""
    ),
    "restaurant": Talk(
        "Have I eaten at {}?",
        "Where have I eaten out?",
        "How much was the bill {x}?",
        "When did I eat {x}?",
        "",
        "at ",
        "there",
    ),
    "donation": Talk(
        "Have I given money to the {}?",
        "To whom have I given money?",
        "How much did I give {x}?",
        "When did I give {x} money?",
        "the ",
        "",
        "them",
    ),
    "workshop": Talk(
        "Did I take the {}?", "Which courses have I taken?", "How many hours was {x}?", "When did I take {x}?"
    ),
    "craft": Talk(
        "Have I finished the {}?",
        "What have I made by hand?",
        "How many hours did {x} take me?",
        "When did I finish {x}?",
    ),
    "volunteering": Talk(
        "Did I help out at the {}?",
        "Where have I volunteered?",
        "How many hours did I help {x}?",
        "When did I help {x}?",
        "the ",
        "at ",
        "there",
    ),
    "gig": Talk("Have I seen {} live?", "Which bands did I see?", "", "When did I see {x} play?", "", "", "them"),
    "wedding": Talk(
        "Was I at the wedding of {}?", "Whose weddings was I at?", "", "When did {x} marry?", "", "", "they"
    ),
    "doctor": Talk("Have I seen a {}?", "Which doctors have I been to?", "", "When did I see {x}?"),
    "plant": Talk("Did I get a new {}?", "Which plants did I get?", "", "When did I get {x}?"),
    "bake": Talk("Have I baked {}?", "What have I baked?", "", "When did I bake {x}?", ""),
}
"""By predicate of :func:`memlab.datasets.synthetic.facts`."""

AMOUNTS = {
    "money": ("And how much was that?", "What did I pay?", "And the price?"),
    "hours": ("How many hours was that?", "And how long did that take?"),
    "pages": ("And how many pages was that?", "How many pages?"),
    "nights": ("For how many nights?", "And how long did I stay?"),
    "miles": ("And how far was that?", "How many miles?"),
    "km": ("And how far was that?", "How many kilometres?"),
}
WHENS = ("And when was that?", "When did that happen?", "And when?", "Which day was it?")
OTHERS = ("the other one", "the other")
ORDINALS = ("the first one", "the second one", "the third one")
SAME = ("And {}?", "What about {}?", "Same question for {}.", "How about {}?")
BEFORES = ("And before that?", "What was it before?", "And the one before?", "Which one did I have before that?")
YES = ("Yes, you told me about it.", "Yes, you mentioned {}.", "You did, I remember {}.", "Yes.")

STATES = {
    "city": ("Which city is my home now?", "Which city was my home before {}?"),
    "job": ("What is my job title now?", "What was my job title before {}?"),
    "gym": ("Which gym do I train at now?", "Which gym did I train at before {}?"),
    "car": ("Which car do I drive now?", "Which car did I drive before the {}?"),
    "barista": ("What do I order at the cafe now?", "What did I order at the cafe before the {}?"),
    "manager": ("Who is my manager now?", "Who was my manager before {}?"),
    "instrument": ("Which instrument am I learning now?", "Which instrument did I learn before the {}?"),
    "vet": ("Who is my dog's vet now?", "Who was my dog's vet before {}?"),
    "series": ("Which podcast do I follow now?", "Which podcast did I follow before {}?"),
    "rent": ("How much rent do I pay now?", "How much rent did I pay before it was {}?"),
    "savings": ("How much is in my holiday fund now?", "How much was in my holiday fund before it was {}?"),
    "internet": ("How fast is my internet now?", "How fast was my internet before it was {}?"),
    "commute": ("How long is my commute now?", "How long was my commute before it was {}?"),
    "phone": ("What is my phone number now?", "What was my phone number before {}?"),
}
PEOPLE = {
    **dict.fromkeys(
        ("brother", "dad", "father", "uncle", "godson", "nephew", "grandfather", "son", "boyfriend"), "him"
    ),
    **dict.fromkeys(("sister", "mum", "mother", "aunt", "niece", "grandmother", "daughter", "goddaughter"), "her"),
}
