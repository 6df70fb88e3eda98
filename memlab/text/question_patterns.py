"""Patterns of questions and of messages, by language: what is asked for, and what a message is
like.

A language that has none is read by those of English.
"""

from __future__ import annotations

from collections.abc import Mapping

from memlab.text.closed_word_classes import MONTHS

Patterns = Mapping[str, str]

_ASKS_AT_FIRST = r"(?i)^\W*(?:[^?]*, )?(?:{words})\b"
_OPENERS = ("what", "which", "who", "where", "when", "why", "how")
_NEVER = r"[^\s\S]"
_SIGNS = {"asks": r"\?", "exclaims": "!", "digits": r"\d+"}
_YOU = "you(?:['’]ve| have| had)? (?:[a-z]+ )?"


def _question_word_patterns(*alternatives_by_word: str) -> dict[str, str]:
    """Name the patterns of questions that begin with a word, after a clause or none.

    :param alternatives_by_word: alternatives, in the order of :data:`_OPENERS`.
    """
    asks_patterns = {}
    for opener_name, alternatives in zip(_OPENERS, alternatives_by_word, strict=True):
        asks_patterns[f"asks_{opener_name}"] = _ASKS_AT_FIRST.format(words=alternatives)
    return asks_patterns


TURNS: Mapping[str, Patterns] = {
    "en": {
        **_SIGNS,
        "time_words": r"(?i)\b(?:yesterday|today|tomorrow|tonight|last|next|ago|since|recently"
        r"|soon|weeks?|weekend|months?|years?|days?|morning|evening"
        r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|\d+)\b|"
        rf"\b(?:{'|'.join(MONTHS).title()})\b",
        "first_person": r"\b(?:I|me|my|mine|we|our|us)\b",
        "second_person": r"(?i)\b(?:you|your|yours)\b",
        "capitalised": r"[\p{Ll},] \p{Lu}\p{Ll}+",
    },
    "de": {
        **_SIGNS,
        "time_words": r"(?i)\b(?:vorgestern|gestern|heute|morgen|übermorgen|letzte\w*|nächste\w*"
        r"|vor|seit|neulich|kürzlich|bald|wochen?|wochenende|monate?n?|jahre?n?|tage?n?|abends?"
        r"|(?:mon|diens|donners|frei|sams|sonn)tags?|mittwochs?|januar|februar|märz|april|mai|juni"
        r"|juli|august|september|oktober|november|dezember|\d+)\b",
        "first_person": r"(?i)\b(?:ich|mich|mir|mein\w*|wir|uns|unser\w*)\b",
        "second_person": r"(?i)\b(?:du|dich|dir|dein\w*|euch|euer|eure\w*)\b",
        # Every noun has a capital there.
        "capitalised": _NEVER,
    },
    "es": {
        **_SIGNS,
        "time_words": r"(?i)\b(?:anteayer|ayer|hoy|mañana|anoche|pasad[oa]s?|próxim[oa]s?|hace"
        r"|desde|recientemente|pronto|semanas?|fin de semana|mes|meses|años?|días?|tarde|noche"
        r"|lunes|martes|miércoles|jueves|viernes|sábados?|domingos?|enero|febrero|marzo|abril|mayo"
        r"|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|\d+)\b",
        "first_person": r"(?i)\b(?:yo|me|mí|mi|mis|mío|mía|conmigo|nos|nosotr[oa]s|nuestr[oa]s?)\b",
        "second_person": r"(?i)\b(?:tú|te|ti|tu|tus|contigo|usted|ustedes|os|vuestr[oa]s?)\b",
        "capitalised": r"[\p{Ll},] \p{Lu}\p{Ll}+",
    },
}
"""Patterns that are counted in a turn."""

QUESTIONS: Mapping[str, Patterns] = {
    "en": {
        **_question_word_patterns(*_OPENERS),
        "asks_how_many": r"(?i)\bhow (?:many|much|often)\b",
        "asks_yes_no": r"(?i)^\W*(?:do|does|did|is|are|was|were|has|have|had|can|could"
        r"|will|would)\b",
        "asks_time": r"(?i)\b(?:when|how long|(?:what|which) (?:date|day|month|year|time))\b",
        "asks_plural": r"(?i)\b(?:what|which)(?: \w+){0,2} \w+s\b|"
        r"\b(?:all|both|each|every|many|list|different|types?|kinds?)\b",
        "asks_of_assistant": rf"(?i)\b(?:(?:did|had) you|{_YOU}(?:suggest|recommend|propos|advis"
        r"|mention"
        rf"|explain|list|call|warn|work)ed|{_YOU}(?:said|told|gave|given|wrote|written"
        rf"|(?:comput|calculat|estimat|nam)ed)|{_YOU}(?:draft|offer)ed"
        r"|your (?:[a-z]+ )?(?:suggestion|recommendation|proposal|advice|answer|draft|plan|estimate"
        r"|calculation|list)s?)\b",
        "asks_opinion": r"(?i)\b(?:would|might|could|likely|probably|considered)\b",
    },
    "de": {
        **_question_word_patterns(
            "was",
            r"welche\w*",
            "wer|wem|wen|wessen",
            "wo|wohin|woher",
            "wann",
            "warum|wieso|weshalb|wozu",
            "wie",
        ),
        "asks_how_many": r"(?i)\bwie ?(?:viele?[nrs]?|oft|häufig)\b",
        "asks_yes_no": r"(?i)^\W*(?:habe?|hast|hat|haben|hatte\w*|bin|bist|ist|sind|war\w*"
        r"|kann\w*|können"
        r"|konnte\w*|wird|werden?|würde\w*|gibt|gab|mag|muss\w*|soll\w*|geht|ging)\b",
        "asks_time": r"(?i)\b(?:wann|wie lange?"
        r"|welche[mnrs]? (?:tag|datum|monat|jahr|uhrzeit|woche))\b",
        "asks_plural": r"(?i)\b(?:welche|was für)(?: \w+){0,2} \w+(?:en|er|e|s)\b|"
        r"\b(?:alle[mnrs]?|beiden?|jede[mnrs]?|vielen?|liste|verschiedenen?|arten|sorten)\b",
        "asks_of_assistant": r"(?i)\b(?:hast du|hattest du|du (?:mir |uns |dazu )?(?:gesagt"
        r"|geschrieben"
        r"|vorgeschlagen|empfohlen|geraten|gerechnet|geschätzt|genannt|erklärt)|dein\w* (?:\w+ )?"
        r"(?:vorschlag|vorschläge|empfehlung\w*|rat|ratschlag|antwort\w*|entwurf|plan|schätzung"
        r"|rechnung|liste))\b",
        "asks_opinion": r"(?i)\b(?:würde\w*|könnte\w*|wahrscheinlich|vermutlich|wohl|vielleicht)\b",
    },
    "es": {
        **_question_word_patterns(
            "qué",
            "cuál|cuáles",
            "quién|quiénes",
            "dónde|adónde",
            "cuándo",
            "por qué",
            "cómo",
        ),
        "asks_how_many": r"(?i)\b(?:cuánt[oa]s?|con qué frecuencia)\b",
        "asks_yes_no": r"(?i)^\W*(?:he|has|ha|hemos|han|había\w*|es|son|era\w*|fue\w*|está\w*"
        r"|tengo|tiene\w*"
        r"|puedo|puede\w*|pod\w+|hay|hubo|voy|va|van)\b",
        "asks_time": r"(?i)\b(?:cuándo|cuánto tiempo|qué (?:fecha|día|mes|año|hora|semana))\b",
        "asks_plural": r"(?i)\b(?:qué|cuáles)(?: \w+){0,2} \w+s\b|"
        r"\b(?:tod[oa]s|amb[oa]s|cada|much[oa]s|lista|distint[oa]s|diferentes|tipos?)\b",
        "asks_of_assistant": r"(?i)\b(?:(?:me|nos) (?:dijiste|sugeriste|recomendaste"
        r"|propusiste|aconsejaste"
        r"|escribiste|explicaste|diste|calculaste|has (?:dicho|sugerido|recomendado|propuesto))"
        r"|tus? (?:sugerencia|recomendación|propuesta|consejo|respuesta|borrador|plan|estimación"
        r"|cálculo|lista)s?)\b",
        "asks_opinion": r"(?i)\b(?:podría\w*|debería\w*|probablemente|quizás?|tal vez)\b",
    },
}
"""Patterns that are looked for in a question."""

FIRST_PERSON = {"en": ("I", "my"), "de": ("ich", "mein"), "es": ("yo", "mi")}
"""How a speaker says of himself that he does something, and that something is his."""

BEHIND_NAMES = {
    "en": r"(?!\w)(?P<owns>['’]s)?",
    "de": r"(?:(?P<owns>s|['’]s?)(?!\w)|(?!\w))",
}
"""What ends a name, and in the group ``owns`` what says that something is theirs: "Ann's", "Annas",
"Jonas'".
"""


def turn_patterns(language: str) -> Patterns:
    """Give the patterns that are counted in a turn; every language has those of the same names.

    >>> from memlab.text.question_patterns import turn_patterns
    >>> turn_patterns("de").keys() == turn_patterns("en").keys()
    True
    """
    return TURNS.get(language, TURNS["en"])


def question_patterns(language: str) -> Patterns:
    """Give the patterns that are looked for in a question.

    Every language has those of the same names.

    >>> from memlab.text.question_patterns import question_patterns
    >>> question_patterns("fr") is question_patterns("en")
    True
    """
    return QUESTIONS.get(language, QUESTIONS["en"])
