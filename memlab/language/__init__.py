"""What the package knows of human language: words, tokens, sentences, values, names, questions, clauses.

Text comes in; words, spans and values go out. No other room holds a list of words, a stemmer or a pattern of a date.

- ``words``: closed classes of English words.
- ``tokens``: the tokeniser with offsets, the form in which words are compared, and the stemmer.
- ``sentences``: the sentence splitter with offsets.
- ``numbers``: numbers in digits and in words, by text2num, and numbers of units of time.
- ``calendar``: months and weekdays by name, and steps through the calendar.
- ``dates``: dates, also those that are only meant ("last Friday", seen from a day).
- ``dating``: such dates written out behind the words that mean them.
- ``mentions``: the dates, numbers and names of a text in one list, as values that can be compared.
- ``cues``: what sentences do (decide, plan, ask, thank, put off), by their phrases.
- ``questions``: the form of a question, and whether it is an aggregation.
- ``parts``: the things that a question joins, compares or lists, each as a question of its own.
- ``clauses``: what a sentence leaves short, written out, and the words that only lead into it.
- ``statements``: the lists of words that are kept as data, by name.
- ``names``: names in sentences, with what speaks for their type.
- ``nouns``: noun phrases, by parts of speech.
- ``verbs``: common verbs and their forms.
- ``people``: what somebody may be to somebody.
- ``analysis``: words as retrieval reads them, in every language that Snowball stems: tokens, stems, stop words.
"""
