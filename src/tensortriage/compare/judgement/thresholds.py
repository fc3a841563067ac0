"""The thresholds from which an error is a fault, or is reported; each number with its reason.

They are used in `tensortriage.compare.judgement.within`, but for the few that one question alone needs.
``bench/truth.py --sensitivity`` measures how halving and doubling one changes misses and false alarms; a reason that
ends in such figures takes them from bench/RESULTS.md, "Thresholds"; the others were not moved yet. A number that
decides something else (a pattern, a likeness, a search) stands in the module that uses it, with its reason. The
certainty of a verdict is in `tensortriage.diagnose.state.confidence`, the error that a search may make by chance in
`tensortriage.search.statistics`, the findings of `check lint` in its rules.
"""

# -- errors of outputs and of ops --------------------------------------------------------------------------------------

MATCH_FACTOR = 10.0
"""How much noisier than its reference an fp32 engine may be (20 dB): kernels differ in summation order, fused
multiply-adds and approximations of exp, erf, tanh. Faults worth the name are orders of magnitude above. Halved,
doubled: as before in 23 cases."""

PREDICTION_GAP_DB = 3.0
"""Measured error beyond predicted rounding error that counts as unexplained: a factor of 1.4, which independent
roundings of the same size do not reach on more than some hundred elements; on fewer, more is allowed. Halved: of 12
cases an alarm that was `inconclusive` is a `local-fault`; doubled: as before."""

CUT_OFF = 0.5
"""Share of evenly spread numbers that cutting off puts one step below rounding to nearest. ONNX Runtime's integer
Softmax is one step off, and never more, in 1 to 30 % of its results (16 to 128 of a row, 1.31.1)."""

CUT_ALWAYS = 0.9
"""Share of results that a kernel which never rounds leaves cut off, of those too that rounding puts a step further: all
but where its own sums cross a whole number. A kernel that rounds otherwise has others on either side."""

FEWEST_CUT = 16
"""Results that rounding puts a step further, needed to conclude that none is rounded: of so many nine tenths are cut
off by chance once in 4,000 cases."""

CUT_SLACK = 1e-3
"""In steps; a whole number that is computed in float32 is one a little less, of an int8 by a 10^-5th of it at most."""

FEW_CARRY = 0.1
"""Median over RMS of an error below which few elements carry it: the lesser half has less than a hundredth of its
power. It is 0.67 for normally distributed errors and 0.87 for evenly distributed ones."""

LOST = 0.5
"""Relative RMS error of a number format from which an output is lost: half of its signal. No floor is beyond it.
Halved, doubled: as before in 12 cases."""

TOO_COARSE = 0.1
"""Relative error (20 dB below the signal) from which a format that explains it is called too coarse for a model. Where
other builds lose less, a build that loses more is a bad one, even if the format predicts any error at all (an emulated
overflow)."""

CERTAIN = 0.01
"""Relative error at an output of an fp32 engine that is a failure whatever the floor: 10,000 times the error of its
kernels. Below it a floor is measured, which costs runs."""

CARRIED_ON = 2e-7
"""Relative error of a piece of a model below which it is not carried on to the outputs: about ten roundings of one
float32 result, which no other op turns into a failure."""

SUSPECT_RATIO = 2.0
"""Local error over floor from which an op is a suspect (6 dB, twice the gap that rounding explains); influence then
decides, so that a low bar costs time and no wrong verdict. Halved, doubled: as before in 12 cases."""

DECISIVE = 0.5
"""Share of the output error that injected suspects must reproduce to be blamed for it: as much as all others make. So
of the avoidable squared error of a quantizer that one change must remove to be named as the mistake. Halved: as
before in 12 cases; doubled: 3 of 6 faults are `inconclusive`."""

NEGLIGIBLE = 0.1
"""A suspect whose influence is below this share of the largest is not named: errors add in power, so that it accounts
for a hundredth. Halved, doubled: as before in 12 cases."""

CURED = 2.0
"""Removing a cause leaves less than half of the error; an error up to twice the rest counts as the rest.
"""

FREEDOM_SHOWS = 4.0
"""A freedom shows at a value where its allowance is this many floors (12 dB): only there can be decided whether the
engine took it. Halved, doubled: as before in 12 cases."""

FREEDOM_SHARE = 0.5
"""Share of the ops of a type at which a freedom has to show to count as taken by the engine: kernels are written per
operator, so that a freedom taken once is taken nearly everywhere. Halved, doubled: as before in 12 cases."""

EACH_OP = 0.01
"""Share of an output beyond which freedoms excuse it only if they excuse each op as well: a fault of one op, such as a
factor of 1.02, hides below no less."""

LAYOUT_EVERYWHERE = FREEDOM_SHARE
"""Share of all ops from which a layout is no fault of an op, but the way in which the engine returns tensors: a habit,
like a freedom."""

# -- files -------------------------------------------------------------------------------------------------------------

FAR_NEARER = 4.0
"""How much nearer than all others one reading of a given file must be to be believed. A healthy file is thousands of
times nearer by one. Data in a wrong order moved the outputs of three trained networks 17 to 25 times as far as the
worst weight that is a tenth too large, and of six networks with drawn weights, whose outputs hardly depend on the
input, 0.5 to 11 times: there some faults leave no reading far nearer, and the user has to decide. No wrong reading came
nearer than the right one."""

CONVERSION_EXACT, CONVERSION_FEW = 4.0, 2.0
"""Integers that a converted model may decide otherwise: so many times the share that the emulated format does, and so
many more elements: few decisions come in whole numbers."""

WEIGHTS_ALIKE = 8.0
"""Roundings of its format by which a weight of a file may differ from the network's: a norm that an exporter multiplies
into it rounds four times, and training once more moves every weight by far more."""

DRAWS_OF_STORED = 3
"""Other roundings of a file's constants that are tried. Over 34 honest quantized files of six networks, their distance
from the network was 0.1 to 1.3 of the larger of two such draws' distances from each other, and 2.1 to 39 over 16 files
with one mistake; a third draw halves the chance that all are small."""

# -- runs and builds that differ ---------------------------------------------------------------------------------------

RARE_RUN = 0.05
"""Share of runs that a race is looked for in; 59 equal runs exclude it at 95 %."""

LEAST_EQUAL_RUNS = 3
"""Runs that are compared however long they take; of two that differ it is unknown which one is usual."""
