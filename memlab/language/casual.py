"""Chat spelling written out: "im workin at the cafe rn, u?" as the words that it stands for."""

from __future__ import annotations

import re

from memlab.language.lexicon import lexicon
from memlab.language.tokens import plain
from memlab.language.verbs import forms

_SPELLINGS = {
    "u": "you", "ur": "your", "r": "are", "n": "and", "w": "with", "w/": "with", "im": "I'm", "ive": "I've",
    "dont": "don't", "doesnt": "doesn't", "didnt": "didn't", "cant": "can't", "wont": "won't", "isnt": "isn't",
    "arent": "aren't", "wasnt": "wasn't", "aint": "isn't", "ain't": "isn't", "havent": "haven't", "hasnt": "hasn't",
    "couldnt": "couldn't", "wouldnt": "wouldn't", "shouldnt": "shouldn't", "thats": "that's", "whats": "what's",
    "wheres": "where's", "whos": "who's", "hes": "he's", "shes": "she's", "theyre": "they're", "youre": "you're",
    "theres": "there's", "rn": "right now", "bc": "because", "cos": "because", "coz": "because", "cuz": "because",
    "tho": "though", "thru": "through", "gonna": "going to", "gona": "going to", "wanna": "want to", "gotta": "have to",
    "finna": "going to", "prolly": "probably", "gf": "girlfriend", "bf": "boyfriend", "tmrw": "tomorrow",
    "nobdy": "nobody", "yrs": "years", "ppl": "people", "plz": "please", "pls": "please", "ya": "you",
}  # fmt: skip
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?/?")
_ITS = re.compile(r"\b[Ii]ts (?=(?:not|a|an|the|now|so|just|all|been|in|on|at|coach|official|over|\d)\b)")
_DROPPED_G = re.compile(r"^[a-z]{2,}[^aeiou\W]in'?$|^(?:doin|goin|seein|bein|buyin|playin|sayin|stayin)'?$")


def written(text: str) -> str:
    """Write chat spelling out, and apostrophes straight; what is spelt well stays as it is.

    >>> from memlab.language.casual import written
    >>> written("im workin at the cafe rn, n u dont know"), written("Begin again in Berlin")
    ("I'm working at the cafe right now, and you don't know", 'Begin again in Berlin')
    """
    return _ITS.sub("it's ", _WORD.sub(_spelt, plain(text)))


def _spelt(word: re.Match[str]) -> str:
    low = word[0].lower()
    if low in _SPELLINGS and not (word[0].isupper() and len(low) > 1 and low not in ("u",)):
        # "W." and "N" alone may be initials.
        if len(low) == 1 and word[0].isupper() and low != "u":
            return word[0]
        return _SPELLINGS[low]
    whole = f"{low.rstrip(chr(39))}g"
    if _DROPPED_G.match(word[0]) and lexicon().get(low, "VBG") == "VBG" and (whole in forms() or whole in lexicon()):
        return whole
    return word[0]
