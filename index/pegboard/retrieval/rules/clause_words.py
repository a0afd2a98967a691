"""Closed lists of words by which `clauses` sees where a clause begins and which words in it say
nothing about the need.

English unless a name says otherwise: how requests are joined in German, French, Spanish, Chinese
and Japanese is listed for "then", "also" and "finally" only.
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _phrases(text: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(phrase.split()) for phrase in text.strip().split("\n"))


AND = _words("and & plus und et y e")
"""English, German, French, Spanish, Italian."""

BUT = _words("but aber mais pero")

SEQUENTIAL = _phrases(
    """then
next
afterwards
afterward
after that
after this
subsequently
thereafter
finally
lastly
last
once done
when done
additionally
furthermore
moreover
in addition
in addition to that
on top of that
at the same time
last but not least
to finish
first
firstly
first of all
to start
to begin with
second
secondly
third
thirdly
fourth
fifth
dann
danach
anschließend
außerdem
schließlich
zuletzt
zum schluss
zuerst
puis
ensuite
après cela
après ça
de plus
enfin
d'abord
luego
después
además
por último
finalmente
primero"""
)
"""Words that lead to another clause wherever they follow a comma or an "and": English, German,
French, Spanish.
"""

ADDITIVE = _phrases(
    """also
besides
likewise
meanwhile
as well as
followed by
auch
ferner
aussi
también"""
)
"""Words that may as well lead to one more thing of the same kind ("and also Paris"); a clause has
to follow.
"""

ALSO_ADJECTIVES = _words("next first second third fourth fifth last also second")

UNSPACED_CONNECTIVES = (
    "然后",
    "接着",
    "随后",
    "之后再",
    "另外",
    "此外",
    "其次",
    "最后",
    "同时",
    "并且",
    "还有",
    "還有",
    "然後",
    "接著",
    "隨後",
    "最後",
    "同時",
    "並且",
    "それから",
    "その後",
    "次に",
    "最後に",
    "そして",
    "さらに",
    "また",
)
"""Chinese and Japanese; each begins a clause where it follows a comma."""

UNSPACED_FILLERS = (
    "请帮我",
    "请你",
    "请",
    "帮我",
    "麻烦你",
    "我想要",
    "我想",
    "我需要",
    "請幫我",
    "請",
    "幫我",
    "我要",
)
"""Chinese: what a polite request begins with."""

FILLERS = _phrases(
    """please
kindly
hi
hello
hey
hey there
dear assistant
thanks
thank you
ok
okay
so
well
now
can you
could you
would you
will you
can we
can i
could i
may i
can you help me
would you be able to
would it be possible to
is it possible to
would you mind
do you think you could
i was wondering if you could
i want you to
i need you to
i would like you to
i'd like you to
i want to
i need to
i have to
i would like to
i'd like to
i would love to
i am trying to
i'm trying to
i am looking to
i'm looking to
i wish to
i'm interested in
i am interested in
i'm also interested in
i am also interested in
i'm looking for
i am looking for
i'm curious about
i am curious about
i'm wondering
i was wondering
good day
good morning
good evening
greetings
i hope to
i also want to
i also need to
i would also like to
i'd also like to
we want to
we need to
we have to
we would like to
we'd like to
we also need to
we also want to
i want
i need
i would like
i'd like
i also need
i also want
i would also like
we need
we want
help me
help me to
help me with
help us
help us to
assist me in
assist me with
help
i need help with
i need help
i need your help
i need your help to
i need your help with
i need your assistance in
i need your assistance with
i need assistance in
i need assistance with
i need some help with
go ahead and
make sure to
be sure to
don't forget to
just
bitte
kannst du
können sie
könnten sie
ich möchte
s'il vous plaît
s'il te plaît
peux-tu
pouvez-vous
pourriez-vous
je voudrais
j'aimerais
por favor
puedes
podrías
puede
quiero
necesito
me gustaría"""
)
"""What a clause begins with and says nothing about the need. English, German, French, Spanish."""

VERBS = _words(
    """accept access activate adapt add adjust administer advise aggregate allocate allow analyse
analyze answer append apply approve
arrange ascertain ask assemble assess assign attach authenticate authorise authorize backup begin
block boost bring browse build buy
calculate call cancel capture categorise categorize change chart check choose classify clean clear
clone close collect combine compare
compile complete compose compress compute conduct configure confirm connect consider construct
contact convert copy correct craft create
crop cut deactivate debug decide decode decrypt delete deliver deploy describe design detect
determine develop diagnose disable discover
display divide download draft draw edit email embed enable encode encrypt end ensure enter
establish estimate evaluate examine execute
expand explain explore export extract fetch figure fill filter find fix forecast format forward
gather generate get give go grab grant
group guide highlight identify illustrate implement import improve include increase indicate
inform initialise initialize initiate insert
inspect install integrate investigate invite issue join keep label launch learn let limit list
listen load locate lock log look lookup
make manage map mark match measure merge message modify monitor move mute name notify obtain offer
open optimise optimize order organise
organize outline parse paste pause pay perform pick pin plan play plot post predict prepare
present preview print process produce propose
provide publish pull purchase push put query quote raise rank rate read rebook recall recommend
record recover redirect reduce refund
register reject release remind remove rename render renew rent repair repeat replace reply report
request reschedule research reserve
reset resize resolve respond restart restore resume retrieve return revert review rewrite rotate
run save scan schedule scrape search
secure see select sell send separate set share shorten show simulate sign sketch solve sort
specify split start stop store stream submit
subscribe subtract suggest summarise summarize supply switch sync tag take tell test text throw
track transcribe transfer transform
translate trigger turn undo uninstall unlock unsubscribe update upgrade upload use validate verify
view visit visualise visualize walk
warn watch withdraw write zip"""
)
"""What people ask tools to do, as an imperative."""

NAMING_VERBS = _words(
    """access answer approach backup block boost call change chart check cut design display draft
draw email end estimate figure fill filter
fix forecast format group guide increase issue join label launch limit list load lock log look map
mark match measure message monitor move
name offer order pin plan play plot post present preview print process produce query quote rank
rate record refund release rent repair
report request research reserve return review run scan schedule search set share sign sketch sort
split start stop store stream supply
switch tag test text track transfer trigger turn update upgrade use view visit walk watch zip
clean clear close complete correct present
secure separate open copy crop export import insert pause pick purchase reset shorten upload
download exchange book contact present"""
) | {"book", "exchange"}
"""Imperatives that are often something else, too: "the name and address list". They begin a clause
only where an object follows.
"""

DETERMINERS = _words(
    """the a an my your our their its his her this that these those it them me us him all any
every each some both another one two three
what how whether which where who when why if"""
)
"""What an object begins with; "and" + a word + one of these is taken for an imperative that no list
knows.
"""

QUESTIONS = _words("how what what's whats why whether how's")
RELATIVES = _words("where when which who whose where's who's")
"""Question words that also begin relative clauses: after a comma alone they begin nothing."""

AUXILIARIES = _words("can could would will should do does did is are was were have has may")
SUBJECTS = _words("i you we they he she it there the a my any this that these those your our")
WISHES = _words(
    "want need require request seek would like also have will plan wish hope must should wonder "
    "prefer 'd"
)

ASKING = _words(
    "i'd we'd let's please tell bitte kannst könnten peux-tu pouvez-vous pourriez-vous puedes "
    "podrías"
)
STATING = _words(
    "i'm we're the my our it this these those they he she his her their its a an all i we i've "
    "there here"
)
"""What a statement begins with."""
COPULAS = _words(
    "is are was were has have had will should isn't aren't doesn't won't can't cannot must"
)

SUBORDINATORS = _words(
    """if when once after before while since because although though as for in on with given based
using to by unless until during from
upon at about regarding considering without"""
)
"""What a clause begins with that waits for its main clause behind the next comma."""

PRONOUNS = _words("it them this that these those they there its their same him her he she one ones")

ABBREVIATIONS = _words(
    """mr mrs ms dr prof st no nos vs etc e.g i.e eg ie approx dept inc ltd co corp jr sr fig figs
vol ed al ca cf tel est min max
jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun u.s u.k a.m p.m z.b
d.h bzw usw ca nr p.ej sra"""
)

EMPTY = (
    _words(
        """a an the and or but of to in on at by for with from as is are was were be been being am
do does did done have has had having can
could would will should may might must shall not no yes i me my mine we us our you your he him his
she her it its they them their this that
these those there here what which who whom whose how why where when whether if so than then too
very just also only some any all both each
every other another such same own more most much many few about into over under again further once
after before while during between
please kindly thanks thank hello hi hey dear ok okay need want like wish help assist assistance
assisting provide give tell let know get
make sure using use used based regarding following below above step steps thing things something
anything everything stuff task tasks
request requests question questions favour favor way ways i'm i'd i've i'll let's it's that's
don't you'd 'd few couple several various
different specific certain first second third next last finally lastly additionally advance now
today able possible trying looking would
information info details detail gathering gather going
find found finding fetch retrieve obtain show see look looks handle share suggest recommend
suggestions recommendations assist"""
    )
    | AND
)
"""Words that name no need: a clause of nothing else is not searched for."""
