"""What the package knows of human language: words, tokens, sentences, values and forms of questions.

Text comes in; words, spans and values go out. Most of it is for English; ``analysis`` and ``phrases`` read every
language that Snowball stems.

- ``words``: closed classes of English words, and the lists that are kept as data.
- ``tokens``: the tokeniser with offsets, the form in which words are compared, and the stemmer.
- ``analysis``: words as retrieval reads them: tokens, stems, stop words.
- ``sentences``: the sentence splitter with offsets.
- ``numbers``, ``dates``: their values, also of relative dates ("last Friday", seen from a day).
- ``calendar``: dates as values: what they span, and whether one states another.
- ``lemmas``: verbs and their forms, and the words by which two wordings are compared.
- ``phrases``: what a text could be about: noun phrases and content words.
- ``questions``: the form of a question, whether it is an aggregation, and patterns of turns and questions.
- ``parts``: the things that a question joins, compares or lists, each as a question of its own.
"""
