"""Processing of natural language: words, tokens, sentences, dates, numbers and forms of questions.

Text comes in; words, spans and values go out. Most of it is for English; ``analysis`` reads every
language that Snowball stems.

- ``words``: closed classes of English words, and the lists that are kept as data.
- ``tokens``: the tokeniser and the sentence splitter with offsets, the form in which words are
  compared, the stemmer.
- ``languages``: the languages that people may speak in a dataset.
- ``analysis``: words as retrieval reads them: tokens, stems, stop words.
- ``numbers``, ``dates``: numbers and dates with their values, also of relative dates ("last
  Friday").
- ``lemmas``: base forms of verbs, and the form in which two wordings are compared.
- ``questions``: the form of a question, and whether it is an aggregation.
- ``quotations``: words of others in a message.
"""
