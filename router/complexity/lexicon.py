"""Words by which a prompt shows what it asks for. English; other languages are told by the lack of COMMON words."""

from __future__ import annotations


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# tasks that need several correct steps in a row
DEMANDING = _set("""
    algorithm algorithms architect architecture asymptotic asynchronous complexity concurrency concurrent contradiction convergence
    critically debug deduce derivation derive design disprove distributed eigenvalue formalise formalize hypothesis implement induction
    infer integral linearizable optimise optimize polynomial proof proofs prove quantify recursive refactor rigorous rigorously simulate
    synthesise synthesize theorem tradeoff tradeoffs offs
""")
# tasks that need understanding and a longer answer
THINKING = _set("""
    analyse analyze argue assess calculate classify compare comparison compute cons consequences contrast critique determine differences
    discuss essay estimate evaluate explain extract implications interpret investigate justify maximise maximize minimise minimize outline
    plan pros report review simplify solve strategy summarise summarize summary verify why
""")
# conditions and order, each of which an answer may get wrong
CONSTRAINTS = _set("""
    after assume before both constraint constraints each either ensure every exactly except fewer finally first given if least left less
    more most must neither only per remaining requirement requirements rest same second should step steps suppose than then third total
    unless without
""")
CODING = _set("""
    api array arrays bash bug c class code compiler css dataframe function functions golang html java javascript json list lists program
    programs python recursion regex rust script sql string strings subarray tuple tuples typescript unittest
""")
MATHS = _set("""
    angle area average derivative digits divisible double equation fraction half integer integers integral matrix mean median modulo
    percent percentage perimeter polynomial prime primes probability product quarter ratio root roots sum third times triangle triple
    twice vector volume
""")
# what nearly every English sentence has some of
COMMON = _set("""
    a an the of to in on at for from by with and or but not is are was were be been do does did has have had it its this that these those
    i you he she we they me my your his her our their what which who when where why how can could will would should may if as so than then
    there here no yes please
""")
