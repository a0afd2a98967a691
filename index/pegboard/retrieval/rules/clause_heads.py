"""Where a clause begins inside a sentence, what it may open with, and what of that says nothing
about the need.

What is asked about a place in the text is worked out beforehand for all places, from the right to
the left, so that reading a request takes time in proportion to its length, whatever stands in it.
"""

from itertools import accumulate

from pegboard.retrieval.rules import clause_words as words
from pegboard.retrieval.rules.clause_tokens import Token, tokens_of

_COMMAS = frozenset(",，、—–-")
_OPENING = frozenset("([{¿¡<（")
_PHRASES = words.SEQUENTIAL | words.ADDITIVE | words.FILLERS
_NO_VERBS = words.EMPTY | words.SUBORDINATORS
_LONGEST = max(len(phrase) for phrase in _PHRASES)
_FIRST_WORDS = frozenset(phrase[0] for phrase in _PHRASES)


class Reading:
    """A text and what can be said of every place in its tokens.

    Attributes:
        text: the text.
        tokens: its tokens, without the line ends of wrapped text.
        connected: for every token, the one behind the connective that begins with it; the token
            itself where none does.
        content: for every token, the first one from there on that is neither politeness nor a
            connective nor punctuation.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        tokens = tokens_of(text)
        neighbours = zip([None, *tokens], tokens, [*tokens[1:], None], strict=False)
        self.tokens = [
            token
            for before, token, after in neighbours
            if token.kind != "line" or _ends_line(before, token, after)
        ]
        count = len(self.tokens)
        self.connected = list(range(count + 1))
        self.content = list(range(count + 1))
        for place in range(count - 1, -1, -1):
            self.connected[place] = self._connected(place)
            behind = max(self._phrase(place, words.FILLERS), self.connected[place])
            token = self.tokens[place]
            if behind == place and (
                token.kind == "line" or token.low in words.AND or self._separates(token)
            ):
                behind = place + 1
            self.content[place] = self.content[behind] if behind > place else place
        self._worded = list(
            accumulate((token.kind in ("word", "quoted") for token in self.tokens), initial=0)
        )
        self._commas = list(
            accumulate((token.text in (",", "，") for token in self.tokens), initial=0)
        )

    def at(self, place: int) -> Token | None:
        """The token at a place; None behind the end."""
        return self.tokens[place] if 0 <= place < len(self.tokens) else None

    def joint(self, first: int, place: int) -> tuple[int, bool]:
        """The token behind the commas, conjunctions and connectives at `place`, and whether it
        begins another clause than `first` did.
        """
        head, comma, joined, led = place, False, False, ""
        while token := self.at(head):
            if token.text in _COMMAS:
                comma, head = True, head + 1
            elif token.low in words.AND or token.low in words.BUT:
                joined, head = True, head + 1
            elif self.connected[head] > head:
                behind = self.connected[head]
                led = (
                    "sequential"
                    if self._phrase(head, words.SEQUENTIAL) == behind
                    else led or "additive"
                )
                head = behind
            else:
                break
        following = self.at(head)
        if following is None or following.kind == "line" or head == place:
            return head, False
        if comma and following.text.startswith(words.UNSPACED_CONNECTIVES):
            return head, True
        if not self._enough(first, place):
            return head, False
        if led == "sequential" and (comma or joined):
            return head, True
        waiting = not joined and not led and self._waits(first, place)
        return head, not waiting and self.begins_clause(head, joined=joined or bool(led))

    def begins_clause(self, place: int, *, joined: bool) -> bool:
        """Whether a clause begins there: with an imperative, a question or a wish.

        Args:
            joined: whether a conjunction or a connective stands before it, or only a comma.
        """
        if self.asks(place):
            return True
        head = self.content[place]
        token, following = self.at(head), self.at(head + 1)
        if (
            token is None
            or following is None
            or token.kind != "word"
            or following.kind not in ("word", "quoted")
        ):
            return False
        if token.low in words.QUESTIONS or (joined and token.low in words.RELATIVES):
            return following.kind == "word"
        if token.low in words.NAMING_VERBS:
            return _is_object(following)
        if token.low in words.VERBS:
            return True
        # "and wash the car": nobody can list all verbs.
        return (
            joined
            and following.low in words.DETERMINERS
            and token.text.isascii()
            and token.text.islower()
            and token.text.isalpha()
            and token.low not in _NO_VERBS
            and not token.low.endswith(("ing", "ly", "s"))
        )

    def asks(self, place: int) -> bool:
        """Whether "please", "can you", "is there", "I would", "help me" or the like stands
        there.
        """
        token, following = self.at(place), self.at(place + 1)
        if token is None or following is None:
            return False
        if token.low in words.AUXILIARIES:
            return following.low in words.SUBJECTS
        if token.low in ("i", "we"):
            return following.low in words.WISHES
        return token.low in words.ASKING or self._phrase(place, words.FILLERS) > place

    def states(self, first: int, last: int) -> bool:
        """Whether the clause tells something instead of asking for it: "My account ID is 12", "It
        does not drain".
        """
        place = first
        while place < last and self.connected[place] > place:
            place = self.connected[place]
        while place < last and self.tokens[place].kind != "word":
            place += 1
        if place >= last or self.asks(place):
            return False
        head = self.tokens[place].low
        if head in words.STATING:
            return True
        if head in words.VERBS or head in words.QUESTIONS | words.RELATIVES | words.SUBORDINATORS:
            return False
        return any(
            token.low in words.COPULAS for token in self.tokens[place + 1 : min(place + 5, last)]
        )

    def starts_sentence(self, place: int) -> bool:
        """Whether a sentence may begin there, behind a full stop."""
        token = self.at(place)
        if token is None or token.kind in ("quoted", "line") or not token.text[0].islower():
            return True
        return token.low in words.VERBS or self.connected[place] > place or self.asks(place)

    def _connected(self, place: int) -> int:
        behind = max(self._phrase(place, words.SEQUENTIAL), self._phrase(place, words.ADDITIVE))
        if behind == place + 1 and self.tokens[place].low in words.ALSO_ADJECTIVES:
            # "next week" and "the second one" lead nowhere: behind a connective stands a comma or a
            # clause.
            after = self.at(behind)
            leads = after is not None and (
                after.text in (",", "，", ":") or after.low in words.VERBS or self.asks(behind)
            )
            return behind if leads else place
        return behind

    def _phrase(self, place: int, phrases: frozenset[tuple[str, ...]]) -> int:
        """The token behind the longest of the phrases that begins at `place`; the place itself if
        none does.
        """
        if self.tokens[place].low not in _FIRST_WORDS:
            return place
        lows = tuple(token.low for token in self.tokens[place : place + _LONGEST])
        for length in range(len(lows), 0, -1):
            if lows[:length] in phrases:
                return place + length
        return place

    def _separates(self, token: Token) -> bool:
        return token.kind == "mark" and token.text not in _OPENING

    def _enough(self, first: int, place: int) -> bool:
        """Whether what stands before a boundary may be a clause: it has a verb with its object,
        unlike "to find and", "search and".
        """
        start = min(self.content[first], place)
        before = self.at(place - 1)
        bare = (
            before is not None
            and before.low in words.VERBS
            and before.low not in words.NAMING_VERBS
        )
        return self._worded[place] - self._worded[start] > 1 and not bare

    def _waits(self, first: int, place: int) -> bool:
        """Whether the clause so far is subordinate and its main clause is to come: "If it
        rains,"
        """
        start = self.content[first]
        if start >= place or self.tokens[start].low not in words.SUBORDINATORS:
            return False
        return self._commas[place] == self._commas[start]


def _ends_line(before: Token | None, line: Token, after: Token | None) -> bool:
    """Whether a line end is more than wrapped text: it leaves a line empty, or a capital letter or
    a list item follows.
    """
    if before is None or after is None or line.text.count("\n") > 1:
        return True
    return before.text != "," and not after.text[0].islower()


def _is_object(token: Token) -> bool:
    return token.kind == "quoted" or token.low in words.DETERMINERS or not token.text[0].islower()
