"""Controlled English: seven small tasks whose answers are known because the sentences are made from their meanings.

In the manner of BLiMP (Warstadt et al. 2020) and HANS (McCoy et al. 2019). Read ``words.toml``,
then :mod:`~english.grammar`, then any one of the phenomena. :func:`~english.suite.suite` gives the rows.
"""
