"""Closed classes of English words, each once.

Everything is lower case and written with a straight apostrophe.
"""

from __future__ import annotations

ARTICLES = frozenset({"a", "an", "the"})
DEMONSTRATIVES = frozenset({"this", "that", "these", "those"})

FIRST_PERSON = frozenset({"i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "ourselves"})
SECOND_PERSON = frozenset({"you", "your", "yours", "yourself", "yourselves"})
THIRD_PERSON = frozenset(
    {
        *("he", "him", "his", "himself", "she", "her", "hers", "herself", "it", "its", "itself"),
        *("they", "them", "their", "theirs", "themselves"),
    }
)
PRONOUNS = FIRST_PERSON | SECOND_PERSON | THIRD_PERSON

BE = frozenset({"be", "am", "is", "are", "was", "were", "been", "being"})
HAVE = frozenset({"have", "has", "had", "having"})
DO = frozenset({"do", "does", "did", "doing", "done"})
MODALS = frozenset({"can", "could", "may", "might", "must", "shall", "should", "will", "would"})
AUXILIARIES = BE | HAVE | DO | MODALS

QUESTION_WORDS = frozenset({"what", "which", "who", "whom", "whose", "when", "where", "why", "how"})
CONJUNCTIONS = frozenset({"and", "or", "but", "nor", "so", "if", "than", "then", "as", "because", "while"})
PREPOSITIONS = frozenset(
    {"of", "at", "by", "for", "with", "about", "to", "from", "in", "on", "into", "off", "out", "up"}
)
