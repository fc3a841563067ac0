"""Phrases that need a second reading stay out of messages, docstrings and pages; see the glossary."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PHRASES = {
    r"for want of": "for lack of",
    r"(?:is|are) to be had": "is available",
    r"(?<!with)held against": "compared with",
    r"taken as right": "assumed to be right",
    r"wrong by itself|wrong by themselves": "wrong in isolation",
    r"(?:is|are|was|were) born": "originates",
    r"beside (?:it|them|the (?:model|file))\b": "next to",
    r"not asked:": "skipped:",
    r"exported anew": "exported again",
    r"(?:what|than) (?:any )?healthy engines? differs? by": "the difference between healthy engines",
    r"in no way that is known": "in no known way",
    r"\bdear(?:er|est)?\b": "expensive",
    r"\bfarther\b": "further",
    r"\b(?:lest|thereof|wherein|whereof|naught|whilst)\b": "a word of this century",
    r'"""(?:What|Who|Whom) (?!.*\?)': "a noun: the docstring names its result",
    r'"""(?:Say|Tell) whether': "Return whether",
    r"told nothing": "unresolved",
    r": (?:Told|Hears) ": "Receives",
    r": Where (?:answers|checks|candidates|engines|builds) ": "a noun: the store of answers, the lab that asks engines",
    r"\bwho(?:ever)? asks\b": "the caller",
    r"as (?:its|their) types? says?\b": "as its types prescribe",
    r"\bthat that\b": "that",
}
"""Phrases, as regular expressions, and what to write instead."""


def test_phrases_that_are_read_twice_are_gone():
    files = [*ROOT.glob("src/**/*.py"), *ROOT.glob("worker/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    phrases = {re.compile(phrase): better for phrase, better in PHRASES.items()}
    found = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, hit.start()) + 1}: {hit[0]!r}, write: {better}"
        for path in files
        if path.name != "glossary.md"  # it lists what not to write
        for text in [path.read_text()]
        for phrase, better in phrases.items()
        for hit in phrase.finditer(text)
    ]
    assert len(files) > 1000
    assert not found, "\n".join(found)
