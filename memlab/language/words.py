"""Closed classes of English words, each once.

Everything is lower case and written with a straight apostrophe, as :func:`memlab.language.tokens.key` gives it.
"""

from __future__ import annotations


def wordset(text: str) -> frozenset[str]:
    """Give the words of a text between white space."""
    return frozenset(text.split())


ARTICLES = frozenset({"a", "an", "the"})
DEMONSTRATIVES = frozenset({"this", "that", "these", "those"})
POSSESSIVES = frozenset({"my", "your", "his", "her", "its", "our", "their"})

FIRST_PERSON = frozenset({"i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "ourselves"})
SECOND_PERSON = frozenset({"you", "your", "yours", "yourself", "yourselves"})
HE = frozenset({"he", "him", "his", "himself"})
SHE = frozenset({"she", "her", "hers", "herself"})
IT = frozenset({"it", "its", "itself"})
THEY = frozenset({"they", "them", "their", "theirs", "themselves"})
THIRD_PERSON = HE | SHE | IT | THEY
PRONOUNS = FIRST_PERSON | SECOND_PERSON | THIRD_PERSON
INDEFINITES = frozenset(
    f"{first}{last}" for first in ("some", "any", "no", "every") for last in ("one", "body", "thing")
) - {"noone"} | {"none", "one", "ones"}

BE = frozenset({"be", "am", "is", "are", "was", "were", "been", "being"})
HAVE = frozenset({"have", "has", "had", "having"})
DO = frozenset({"do", "does", "did", "doing", "done"})
MODALS = frozenset({"can", "could", "may", "might", "must", "shall", "should", "will", "would"})
AUXILIARIES = BE | HAVE | DO | MODALS
FINITE_AUXILIARIES = AUXILIARIES - {"be", "been", "being", "having", "doing", "done"}
"""Those that open a question."""

QUESTION_WORDS = frozenset({"what", "which", "who", "whom", "whose", "when", "where", "why", "how"})
CONJUNCTIONS = frozenset({"and", "or", "but", "nor", "so", "if", "than", "then", "as", "because", "while"})
SUBORDINATORS = wordset("although though unless until till whereas whether since either neither both yet except")
PREPOSITIONS = frozenset(
    {"of", "at", "by", "for", "with", "about", "to", "from", "in", "on", "into", "off", "out", "up"}
)
PLACE_PREPOSITIONS = wordset(
    """above across after against along amid among amongst around before behind below beneath beside besides between
    beyond despite down during inside like near onto outside over past per regarding through throughout toward towards
    under upon versus via within without"""
)
"""Prepositions that say where, when or whither; each tells a little, which those of :data:`PREPOSITIONS` do not."""

QUANTIFIERS = wordset(
    """all another any each enough every few fewer less least many more most much no other others own same several some
    such"""
)
NEGATIONS = wordset("no not never none nothing nobody nowhere neither nor cannot without")
ADVERBS = wordset(
    """again almost alone already also always anyhow anyway anywhere aside else elsewhere even ever everywhere further
    hence here however indeed instead just maybe meanwhile moreover mostly namely nevertheless now often once only
    otherwise perhaps quite rather really so sometimes somehow somewhere still there therefore thus together too
    very well yet"""
)
LIGHT_VERBS = wordset(
    """become becomes became becoming find finds found get gets got getting give gives gave go goes let put see seem
    seems seemed seeming take takes took tell know"""
)
"""Verbs that tell little without their object."""

_SHORTENED = {
    "m": ("i",),
    "re": ("you", "we", "they", "there", "what", "who", "where", "how"),
    "ve": ("i", "you", "we", "they", "could", "should", "would", "might", "must", "who"),
    "ll": ("i", "you", "he", "she", "it", "we", "they", "that", "there", "this", "who", "what"),
    "d": ("i", "you", "he", "she", "it", "we", "they", "that", "there", "who", "how", "where"),
}
NEGATED = frozenset(
    f"{stem}n't"
    for stem in wordset("is are was were has have had do does did ca could might must sha should wo would ai")
)
CONTRACTIONS = NEGATED | frozenset(f"{word}'{ending}" for ending, words in _SHORTENED.items() for word in words)
"""All but those with 's, which a word is compared without."""

STOP_WORDS = frozenset().union(
    *(ARTICLES, DEMONSTRATIVES, PRONOUNS, INDEFINITES, AUXILIARIES, QUESTION_WORDS, CONJUNCTIONS, SUBORDINATORS),
    *(PREPOSITIONS, PLACE_PREPOSITIONS, QUANTIFIERS, NEGATIONS, ADVERBS, LIGHT_VERBS, CONTRACTIONS),
) | frozenset({"due", "etc", "eg", "ie", "latter", "former", "last", "next", "whole", "whatever", "whenever"})
"""Words that no text is about. (What retrieval leaves out is less: :mod:`memlab.language.analysis`.)"""

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
TIME_UNITS = frozenset({"day", "week", "month", "year"} | {"days", "weeks", "months", "years"})
TIMES = (
    (frozenset(MONTHS) - {"may"})
    | frozenset(WEEKDAYS)
    | (TIME_UNITS - {"day", "days"})
    | wordset(
        """today tonight tomorrow yesterday weekend morning afternoon evening night summer winter spring autumn fall
        birthday anniversary ago"""
    )
)
"""Words of time; "may" is a verb, and "day" a greeting, more often than not."""

NUMBERS = wordset(
    """two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion dozen first second
    third fourth fifth sixth seventh eighth ninth tenth once twice half"""
)
"""Words of number and of place in an order; their values are read by :mod:`memlab.language.numbers`."""

NAME_JOINERS = wordset("of the and in for de la van von da di a to on at with")
"""Small words that may stand inside a name."""

COURTESY = wordset(
    """hey hi hello hiya yo bye goodbye thanks thank thx cheers please sorry welcome congrats congratulations wow whoa
    oh ooh ah aw aww haha hahaha lol hmm mmm yeah yep yup yes nah nope ok okay sure alright right great good nice cool
    awesome amazing fantastic wonderful lovely sweet beautiful gorgeous incredible impressive brilliant perfect
    excellent terrific super fun glad happy proud excited exciting inspiring inspiration love luck lucky kind hope hug
    hugs wishes wish care see later soon talk catch chat hear heard hearing know think thought mean means meant guess
    totally absolutely definitely exactly agree agreed understand understood understandable appreciate interesting
    sounds sound looks look looking forward keep going things thing stuff lot lots bit way truly wait lets feel feeling
    feels guy guys girl man dude buddy friend pal mate day weekend sharing share shared telling told say said saying
    ask asked true fair point noted gonna wanna doing best cute stunning delicious yummy sad bad awful rough tough
    """
)
"""What chats say to be polite; it tells nothing of what a conversation was about."""
