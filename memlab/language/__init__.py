"""What the package knows of human language: words, tokens, sentences, values, names, questions, clauses.

Text comes in; words, spans and values go out. No other room holds a list of words, a stemmer or a pattern of a date.

- ``words``: closed classes of English words.
"""
