"""The words by which the rules of extraction decide what is a statement worth keeping."""

from __future__ import annotations

from memlab.language.words import wordset

ADVERBS = wordset("""
just also really recently finally always usually often still now currently already actually even never only sometimes
mostly mainly regularly typically truly totally absolutely definitely honestly lately once twice first originally
originally previously initially suddenly normally generally especially particularly both all literally pretty much
officially
""")  # fmt: skip
# After these words a verb group says what may be, not what is.
HEDGES = wordset("""
would could might may should maybe perhaps probably possibly almost nearly wish wished if unless supposed pretend
pretended kidding joking imagine suppose whether hypothetically 'd dreamed dreamt shall ought must seem seems
""")  # fmt: skip
PREPOSITIONS = wordset("""
at in to for with about of from into as on by up out off over through back around against together under along across
down away near after during within between
""")  # fmt: skip
QUANTIFIERS = wordset("some all another both each few lots tons plenty most one several many various different")
# Words in -ing and -ed after "I am" and "I" that open small talk, thoughts and reports rather than statements.
TALKING = wordset("""
kidding joking saying talking thinking hoping wondering feeling doing being sending asking telling getting looking
going wishing guessing loving assuming suggesting dying seeing hearing wanting needing agreeing coming referring
mentioning curious begging missing interesting something nothing anything everything rooting cheering waiting
needed tried wished hoped wondered seemed looked asked agreed guessed happened mentioned noticed realized realised
figured appreciated missed assumed ended used wanted supposed suggested expected doubted laughed cried loved liked
admired stayed stated replied continued thanked promised suspected imagined indeed feared interested excited tired
supposed shocked amazed felt received listed failed called managed
""")  # fmt: skip
STATES = wordset("""
married single divorced engaged vegan vegetarian pescatarian retired unemployed pregnant widowed left-handed
right-handed bilingual diabetic asthmatic colorblind colour-blind deaf blind jewish muslim christian catholic hindu
buddhist atheist gay lesbian bisexual transgender trans lactose-intolerant gluten-free self-employed
american british canadian australian german french italian spanish indian chinese japanese korean mexican brazilian
irish scottish dutch swedish norwegian danish polish russian ukrainian greek turkish portuguese
""")  # fmt: skip
_ADJECTIVES = """
allergic:to married:to engaged:to related:to interested:in involved:in passionate:about afraid:of scared:of
terrified:of fond:of proud:of good:at bad:at great:at terrible:at keen:on obsessed:with excited:about/for
nervous:about worried:about fluent:in intolerant:to addicted:to diagnosed:with committed:to born:in/on based:in
employed:by/at enrolled:in/at dedicated:to responsible:for thrilled:about grateful:for thankful:for into: from:
drawn:to inspired:by blessed:with raised:in hooked:on sick:of tired:of named: called: friends:with familiar:with
busy:with close:to part:of determined:to lucky:to
"""
ADJECTIVES = {
    adjective: frozenset(after.split("/")) - {""}
    for adjective, _, after in (entry.partition(":") for entry in _ADJECTIVES.split())
}
# "I want to say": talk about the talk.
WORDLESS = wordset("""
say thank tell know hear see share show ask be do make give let know mention check take get keep talk catch look think
have pass remind point stay need congratulate miss hang chat
""")  # fmt: skip
# "I have time", "a great day": chat, not memory.
LIGHT = wordset("""
time fun blast idea ideas clue doubt doubts feeling feelings question questions news moment chance faith hope hopes
thought thoughts point look minute minutes problem word words say energy plan plans update day week weekend night
evening morning stuff thing things couple lot bit choice luck trouble reason reasons issue mood right way access
vibe vibes laugh laughs break rest mind step steps try call chat talk care place part times success impact difference
sense progress mistake mistakes effort surprise pleasure opportunity chances tips advice month year summer
control connection similar same
""")  # fmt: skip
