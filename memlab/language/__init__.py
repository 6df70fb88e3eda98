"""What the package knows of human language: words, tokens, sentences, values and forms of questions.

Text comes in; words, spans and values go out. Most of it is for English; ``analysis`` and ``phrases`` read every
language that Snowball stems.

- ``words``: closed classes of English words, and the lists that are kept as data; ``verbs``: verbs and their forms.
- ``tokens``: the tokeniser with offsets, the form in which words are compared, and the stemmer.
- ``sentences``: the sentence splitter with offsets.
- ``analysis``: words as retrieval reads them: tokens, stems, stop words.
- ``phrases``: what a text could be about: noun phrases and content words.
- ``numbers``, ``dates``: their values, also of dates that are only meant ("last Friday", seen from a day).
- ``calendar``: what such dates span and whether one states another; ``mentions``: values of a text in one list.
- ``manner``: the polarity of a statement, and the words by which two wordings are compared.
- ``questions``: the form of a question, and whether it is an aggregation; ``shapes``: patterns of turns and questions.
- ``parts``: the things that a question joins, compares or lists, each as a question of its own.
"""
