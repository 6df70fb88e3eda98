"""Processing of natural language: words, tokens, sentences, dates, numbers and forms of questions.

Text comes in; words, spans and values go out. Most of it is for English; ``text_analyser`` reads
every language that Snowball stems.

- ``closed_word_classes``: closed classes of English words, and the lists that are kept as data.
- ``tokens_and_sentences``: the tokeniser and the sentence splitter with offsets, the form in which
  words are compared, the stemmer.
- ``languages``: the languages that people may speak in a dataset.
- ``text_analyser``: words as retrieval reads them: tokens, stems, stop words.
- ``number_expressions``, ``date_expressions``: numbers and dates with their values, also of
  relative dates ("last Friday").
- ``verb_lemmas``: base forms of verbs, and the form in which two wordings are compared.
- ``question_forms``: the form of a question, and whether it is an aggregation.
- ``quotations``: words of others in a message.
"""
