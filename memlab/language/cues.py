"""What sentences do, by the phrases that they begin with or hold: decide, plan, ask, thank, put off.

Patterns for polars.
"""

from __future__ import annotations

from memlab.language.statements import wordlist
from memlab.language.verbs import forms
from memlab.language.words import AUXILIARIES, MONTHS, WEEKDAYS, wordset


def any_of(*phrases: str, start: str = r"\b", end: str = r"\b") -> str:
    """Write phrases as one pattern, in any case, with straight or curled apostrophes."""
    joined = "|".join(phrases).replace("'", "['’]")
    return f"(?i){start}(?:{joined}){end}"


_ADVERB = (
    r"(?:(?:finally|just|all|both|now|also|already|still|really|definitely|probably|then|have to|need to|try to) )*"
)
_I_HAVE = rf"(?:i|we)(?: have|'ve)? {_ADVERB}"
_I_WILL = rf"(?:i|we)(?: will| shall|'ll| am going to| are going to|'m going to|'re going to) {_ADVERB}"
_DAY = f"(?:{'|'.join(WEEKDAYS)})"
_MONTH = f"(?:{'|'.join(MONTHS)})"

DECISION = any_of(
    rf"{_I_HAVE}(?:decided|agreed (?:to|on|that)|settled on|voted (?:for|to)|opted (?:for|to|out)|committed to)",
    rf"{_I_HAVE}(?:chose|chosen|picked|pick) (?:the|a|an|out|{_MONTH})",
    rf"{_I_HAVE}made up (?:my|our) minds?",
    rf"{_I_WILL}(?:go (?:with|for) (?:the|a|an|it|that)|take the \w+|pick the|choose the|stick (?:with|to))",
    "(?:i'm|we're|i am|we are) (?:going with (?:the|that|option|\\w+ for)|sticking with)",
    "(?:my|our|the|final) (?:final )?(?:decision|choice)(?: is| was| from|:)",
    "it'?s (?:settled|decided)",
    "(?:\\w+ and i|board|committee|team|everyone|everybody)(?: have| has)? (?:decided|agreed (?:to|on|that)|settled "
    "on)",
    r"let's (?:go (?:with|for the)|stick (?:with|to)|settle (?:on|for))",
    f"let's (?:book|meet|schedule|set|make it) .*(?:{_DAY}|{_MONTH}|tomorrow|tonight|next week|\\d)",
    r"^\W*decided\W",
)
"""Settles what to do; not :data:`UNDECIDED`, nor :data:`LONG_AGO`."""
UNDECIDED = any_of(
    "(?:not|never|\\w+n't|yet to|before|if|whether|until|once|should|help me|help us|wish(?:es)?|had) (?:\\w+ )?"
    "(?:decided?|chosen?|choose|pick(?:ed)?|agreed?|settled?)",
    "decided? (?:if|whether|yet)",
)
LONG_AGO = any_of(
    "back (?:in|then|when)",
    "(?:years|decades) ago",
    "as a (?:kid|child|teenager)",
    "when (?:i|we) (?:was|were)",
    "(?:that's|this is|is) (?:why|how|when)",
    "used to",
    "chose .*(?:because|'cause|cause)",
    "decided .*because .*was",
)
"""Tells of a choice of other times, or why it was made."""

# Verbs of errands: "I need to" and "I'll" alone also begin resolutions ("I'll keep pushing").
_ERRAND = (
    "(?:call|phone|ring|send|e-?mail|text|message|write|reply|book|buy|order|pay|check|look (?:up|into)|ask|bring|"
    "pick up|fix|prepare|draft|submit|file|finish|update|upload|print|schedule|arrange|organi[sz]e|set up|sign|"
    "register|apply|research|review|visit|contact|invite|return|cancel|renew|forward|follow up|replace|pack|share|"
    "drop off|hand in|collect|confirm|clean|wash|water|remind|"
    "talk to (?:my|the|our|him|her|them)|find out|get (?:a|an|the|some|my|our|you|back to|in touch))"
)

NEED = any_of(
    rf"{_I_HAVE}(?:should really|need to|got to|gotta|must|had better|have to|ought to) (?:really |still )*{_ERRAND}"
)
REMINDER = any_of(
    "remind me to",
    "to-?do",
    "notes? to self",
    "(?:please )?don't forget to",
    "remember to",
    start=r"(?:^|[,;.!:–—-]\s*|\band |\bplease )",
)
WILL = any_of(
    rf"{_I_WILL}{_ERRAND}",
    r"let me (?:call|phone|ring|e-?mail|message|write to) \w+",
    rf"(?-i:\p{{Lu}}\w+) (?:will|is going to) {_ERRAND}",
)
TOLD = any_of(
    rf"(?:(?:i )?(?:still )?(?:need|have|got) to|gotta|must) (?:still )?{_ERRAND}",
    rf"(?:please|pls|plz) (?:also )?{_ERRAND}",
    start=r"^\W*(?:(?:and|ok|okay|also|so|oh|hey|hi)\W+)*",
)
"""Begins with what is to do, without who is to do it."""
_WHEN = r"(?:tomorrow|tonight|soon|next \w+|this (?:week|weekend|month|summer|fall|winter|spring))"
LATER = any_of(
    "tomorrow",
    "tonight",
    "soon",
    "later today",
    "this (?:week|weekend|month|afternoon|evening|summer|fall|winter|spring)",
    r"(?:next|coming|upcoming) (?:few )?\w+",
    rf"(?:by|before|until|on|this) {_DAY}s?",
    rf"(?:by|before|until|on|in) {_MONTH}",
    r"(?:by|before|until) (?:the end of|noon|\d)",
    r"in (?:a|an|two|three|four|\d+) (?:few |couple of )?(?:hour|day|week|month)s?",
)
REQUEST = any_of(
    r"(?:can|could|would|will) you (?:please )?(?:send|e-?mail|call|book|buy|bring|pick up|order|pay|"
    r"remind \w+ (?:to|about)|fix|schedule|forward)",
    start=r"^\W*(?:(?:hey|hi|so|and|also|oh|ok|okay|please)\W+)?(?:\w+, )?",
)
VAGUE = any_of(
    "do my best",
    "be there for",
    "never",
    "always",
    "keep (?:going|pushing|working|it up|you posted)",
    "in mind",
    "used to",
    "if i were",
    "would have",
    "(?:see|talk to|ttyl|catch) (?:you|ya|u)",
    "take care",
    "stay (?:positive|strong|motivated|true)",
    "have (?:some )?fun",
    "enjoy",
    "next time",
    "be (?:fine|ok|okay|great|good)",
)
NO_TASK = any_of(
    "(?:if|unless) (?:i|you|we|it|there) \\w+",
    "check (?:(?:\\w+ ){0,3}out|it|that|this|them)",
    "look (?:into|up) (?:it|that|this|them)",
    "ask(?: you)? (?:something|a question)",
    "maybe|perhaps|probably|might|hopefully|some ?(?:day|time)|at some point|one day|eventually|could be",
    "(?:forget|remember) to (?:be|breathe|believe|celebrate|keep|laugh|listen|love|prepare (?:your|emotion\\w*)|relax|"
    "rest|smile|stay|take (?:a |some )?(?:nice |good |great |lots of )?(?:time|care|breaks?|deep|pics?|pictures?|"
    "photos?)|"
    "treat|trust)",
    "send(?:ing)? (?:you )?(?:good|positive|lots|love|hugs)",
    "(?:bring|share) (?:\\w+ )?(?:happiness|hope|joy|love|attention|awareness|people|comfort|smiles?)",
    "get (?:the|some|a|an) (?:word|feel|hang|sense|rest|sleep|break)",
    "fix things",
    "one (?:of those|like that)|like (?:that|this)",
)
"""Sounds like something to do, and is a courtesy, a resolution or a thought."""

ASKS = r"[?？]\W*$"
COURTESY = any_of(
    "how (?:are|have|is|'ve) (?:you|ya|u|things|life|everything|it)\\b.*",
    "how(?:'s|'ve| has| have| was| is)(?: it| life| everything| things| you| your (?:day|week|weekend|summer|"
    "evening))(?: been)?\\b.*",
    "what(?:'s| is| has|'ve| have)? (?:up|new|been|you been)\\b.*",
    "what about (?:you|u|yours)?.*",
    "how about (?:you|yours)?.*",
    "how (?:do|does) (?:that|this|it) sound",
    "(?:do|did|does) (?:that|this|it) (?:help|make sense|work|sound).*",
    "(?:do|would) you (?:like|want) (?:me|a|an|some|more|any|help|to (?:hear|see|know))\\b.*",
    "(?:would|shall|should|can|may|could) i (?:help|ask|share|suggest)\\b.*",
    "anything else.*",
    "what else.*",
    "what do you (?:think|say|reckon).*",
    "what would (?:be|help).*",
    "you know.*",
    "(?:isn't|aren't|wasn't|don't|doesn't|right|wouldn't) (?:it|that|he|she|you).*",
    "who (?:knew|doesn't|would have).*",
    "can you (?:believe|imagine).*",
    "guess what.*",
    ".* posted .*",
    "right",
    "really",
    "seriously",
    "why not",
    "remember .*",
    "any chance",
    "want (?:me|some|more|to (?:hear|see|know))\\b.*",
    "(?:have you )?(?:ever )?(?:heard|seen|tried) (?:of )?(?:it|that|them|this)",
    start=r"^\W*(?:(?:hey|hi|hello|so|and|but|anyway|anyways|by the way|btw|oh|wow|well|yeah|cool|nice|great|"
    r"thanks)\b\W*)*(?:\p{Lu}\w+\W+)?",
    end=r"\W*$",
)
TAG = any_of(
    "right",
    "huh",
    "eh",
    "isn't it",
    "don't you think",
    "you know",
    "ok",
    "okay",
    "yeah",
    start=r"[,.!–—-] ?",
    end=r"\W*$",
)
PUT_OFF = any_of(
    "(?:i|we) (?:don't|do not|didn't) know(?: yet)?[.,!;]",
    "(?:i'm |we're |am )?(?:not|n't) (?:quite |really |so |very |entirely )?sure(?: yet| about| when| what|"
    " which| where)?",
    "no idea",
    "no clue",
    "(?:let me|i'll|i'll have to|i need to|gotta|have to) (?:check|look (?:it|that|into)|find out|ask|get back|"
    "think about (?:it|that))",
    "haven't (?:decided|figured|thought|picked|chosen)",
    "(?:still|yet to) (?:deciding|undecided|figuring|decide|up in the air)",
    "(?:get|come) back to you",
    "hard to say",
    "can't say",
    "(?:don't|do not) have (?:that|this|access|(?:any |enough )?information)",
)
UNKNOWN = any_of(
    "(?:(?:do|did|does|could)(?: not|n't)|can't|cannot|can not) (?:\\w+ )?(?:know|find|see|tell|say|recall|remember|"
    "mention|specify|state|give|answer|have (?:\\w+ ){0,3}(?:information|record|details|access|figure|answer))",
    "(?:have|had|is|are|was|were|there's) (?:nothing|no) (?:\\w+ )?(?:record|memory|information|idea|mention|note|word|"
    "evidence|about|on|in)",
    "(?:not|never|nothing|nobody|no one|none|\\w+n't) (?:\\w+ )?(?:known|mentioned|stated|specified|recorded|noted|"
    "given|told|said)",
    "(?:not (?:aware|able|sure|certain)|unsure|unknown|unanswerable|(?:not enough|insufficient|no) information)",
)
"""Says that something is not known."""
EVENT = any_of(
    "decided|chose|chosen|picked|agreed|planning|going to|gonna|signed up|accepted|booked|bought|joined|finished|"
    "launched|won|moved|quit|let's"
)
DANGLING = any_of(
    "it|that|this|they|those|these|he|she|which|there", start=r"^\W*(?:(?:and|but|so|or|because|also|then)\b\W*)?"
)
"""Begins with a word that nobody understands alone."""

# Pasts that tell of nothing done.
_INWARD = AUXILIARIES | wordset(
    """said thought felt loved liked wanted needed hoped wished meant knew guessed heard kept agreed appreciated used
    enjoyed wondered seemed looked figured missed cared believed saw understood promised need feed"""
)
_PAST = "|".join(sorted({word for word, form in forms().items() if "past" in form.tense} - _INWARD))
_LEAD = r"^\W*(?:[\w' ’-]{0,40}[,:] )?(?:on (?:the )?[\w ]{1,20} |(?:last|this) \w+ |(?:earlier )?today |yesterday )?"
_SINCE = rf"(?:i|we)(?:'ve| have|'d| had| did)? {_ADVERB}(?:recently |even |actually |eventually |also |went and )*"
# Doings that are no news.
_IDLE = f"{'|'.join(sorted(wordlist('talking')))}|putting|finding|resisting|trying to|having (?:fun|a)|reading as usual"
DONE = any_of(rf"{_SINCE}(?:{_PAST}|\w{{2,}}ed|had (?:a|an|my|our|the|to))(?:[^\w']|$)", start=_LEAD, end="")
"""Somebody tells what they did (or, with :data:`INWARD`, felt and thought)."""
INWARD = any_of(
    rf"{_SINCE}(?:{'|'.join(sorted(_INWARD - AUXILIARIES))})",
    "(?:i|we)(?:'ve| have) got",
    rf"(?:i|we)(?:'m| am|'re| are) {_ADVERB}(?:so |really )*(?:{_IDLE})",
    rf"(?:i|we)(?:'ve| have) been (?:{_IDLE})",
    start=_LEAD,
)
_TURN = (
    "started|began|quit|left|moved|joined|adopted|bought|sold|finished|completed|won|lost|decided|switched|became|"
    "signed up|launched|opened|accepted|broke|stopped|gave up|graduated|submitted|published|dyed|wrapped up|upgraded|"
    "got (?:a|an|my|our|the|into|done|married|engaged|promoted|hired|accepted)"
)
CHANGED = any_of(rf"(?:i|we) {_ADVERB}(?:recently |actually )*(?:{_TURN})(?:[^\w']|$)", "no longer", end="")
"""What somebody did begins, ends or settles something."""
UNDER_WAY = any_of(
    rf"(?:i|we)(?:'m| am|'re| are) {_ADVERB}(?:currently )?(?:\w+ing|gonna|about to)",
    rf"(?:i|we) {_ADVERB}plan to",
    "(?:i|we)(?:'ve| have) been \\w+ing",
    f"(?:i|we)(?: will|'ll) .*{_WHEN}",
    "(?:i|we)(?:'ve| have) (?:got )?(?:a|an|another|plans) .*\\b(?:next|upcoming|coming up|soon|tomorrow)",
    start=_LEAD,
)
"""Somebody tells what they are at, or will be."""
POINTING = any_of(
    "it|its|this|that|these|those|they|them|their|he|she|him|her|his|there|here|ones?|too|either|both|such"
)
"""A word whose meaning may stand in another sentence."""
ORDER = any_of(
    "in (?:which|what|the) (?:\\w+ )?(?:order|sequence)|(?:order|sequence) (?:of|in which)",
    "chronolog\\w*|timeline|one after (?:another|the other)|earliest|(?:first|start) to (?:last|finish|end)",
    "first\\b.{1,40}\\b(?:last|next|second|what after|then what)|(?:sort|rank|put) (?:these|them|the following)",
)
"""Asks what came after what."""
SUMMARY = any_of(
    "sum(?: \\w+){0,3} up|summar\\w+|overview|recap\\w*|(?:run|walk|take) me through|(?:story|account) of",
    "(?:describe|tell me|explain) (?:how|what happened)|over the (?:months|weeks|course|year)|in the course of",
    "how (?:did|has|have) .*\\b(?:evolved?|develop(?:ed)?|changed?|progress(?:ed)?)",
)
"""Asks how something went, as a whole."""
OF_ASSISTANT = any_of(
    "(?:did|had) you",
    "you(?:'ve| have| had)? (?:[a-z]+ )?(?:suggest|recommend|propos|advis|mention|explain|list|call|warn|work)ed",
    "you(?:'ve| have| had)? (?:[a-z]+ )?(?:said|told|gave|given|wrote|written|(?:comput|calculat|estimat|nam)ed)",
    "you(?:'ve| have| had)? (?:[a-z]+ )?(?:draft|offer)ed",
    "your (?:[a-z]+ )?(?:suggestion|recommendation|proposal|advice|answer|draft|plan|estimate|calculation|list)s?",
)
"""Asks for what the assistant said, rather than for what it was told."""
