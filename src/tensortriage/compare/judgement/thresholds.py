"""The thresholds that verdicts rest on: one table, each number with its reason.

They are compared with errors in `tensortriage.compare.judgement.within` and nowhere else. Misses against false alarms
of the whole are measured by ``bench/truth.py``.
"""

MATCH_FACTOR = 10.0
"""How much noisier than its reference an fp32 engine may be (20 dB): kernels differ in summation order, fused
multiply-adds and approximations of exp, erf, tanh. Faults worth the name are orders of magnitude above."""

PREDICTION_GAP_DB = 3.0
"""Measured error beyond predicted rounding error that counts as unexplained: a factor of 1.4, which independent
roundings of the same size do not reach on more than some hundred elements; on fewer, more is allowed."""

CUT_OFF = 0.5
"""Share of evenly spread numbers that cutting off puts one step below rounding to nearest. ONNX Runtime's integer
Softmax is one step off, and never more, in 1 to 30 % of its results (16 to 128 of a row, 1.31.1)."""

FEW_CARRY = 0.1
"""Median over RMS of an error below which few elements carry it: the lesser half has less than a hundredth of its
power. It is 0.67 for normally distributed errors and 0.87 for evenly distributed ones."""

LOST = 0.5
"""Relative RMS error of a number format from which an output is lost: half of its signal. No floor is beyond it."""

TOO_COARSE = 0.1
"""Relative error (20 dB below the signal) from which a format that explains it is said to be too coarse for a model."""

CERTAIN = 0.01
"""Relative error at an output that is a failure whatever the floor, on an fp32 engine: 10,000 times what its kernels
err. Below it a floor is measured, which costs runs."""

CARRIED_ON = 2e-7
"""Relative error of a piece of a model below which it is not carried on to the outputs: about ten roundings of one
float32 result, which no other op turns into a failure."""

SUSPECT_RATIO = 2.0
"""Local error over floor from which an op is a suspect (6 dB, twice the gap that rounding explains); influence then
decides, so that a low bar costs time and no wrong verdict."""

FP32_SUSPECT_ROUNDINGS = 20.0
"""How many roundings of one result an fp32 kernel may be off by without suspicion, where no floor was measured: sums of
many terms are that far."""

DECISIVE = 0.5
"""Share of the output error that injected suspects must reproduce to be blamed for it: as much as all others make."""

NEGLIGIBLE = 0.1
"""A suspect whose influence is below this share of the largest is not named: errors add in power, so that it accounts
for a hundredth."""

FREEDOM_SHOWS = 4.0
"""A freedom shows at a value where its allowance is this many floors (12 dB): only there can be told whether it was
taken."""

FREEDOM_SHARE = 0.5
"""Share of the ops of a type at which a freedom has to show for it to be what the engine does: kernels are written per
operator, so that a freedom taken once is taken nearly everywhere."""

PATTERN_SHARE = 0.9
"""Share of the squared error that a pattern (a transposition, a scale) must account for to be told: what is left is a
tenth, within what rounding to a narrow format adds to it."""
