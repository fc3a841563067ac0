"""The thresholds that verdicts rest on: one table, each number with its reason.

Those of errors are asked in `tensortriage.compare.judgement.within` and nowhere else. A reason tells a measurement or a
derivation where there is one; a number without was chosen by its reason, and what all of them together miss and call
wrong is measured by ``bench/truth.py``. How sure a verdict is stands in `tensortriage.diagnose.state.confidence`, what
a search may take on chance in `tensortriage.search.statistics`, what `check lint` tells of a file in its rules.
"""

# -- errors of outputs and of ops --------------------------------------------------------------------------------------

MATCH_FACTOR = 10.0
"""How much noisier than its reference an fp32 engine may be (20 dB): kernels differ in summation order, fused
multiply-adds and approximations of exp, erf, tanh. Faults worth the name are orders of magnitude above."""

PREDICTION_GAP_DB = 3.0
"""Measured error beyond predicted rounding error that counts as unexplained: a factor of 1.4, which independent
roundings of the same size do not reach on more than some hundred elements; on fewer, more is allowed."""

CUT_OFF = 0.5
"""Share of evenly spread numbers that cutting off puts one step below rounding to nearest. ONNX Runtime's integer
Softmax is one step off, and never more, in 1 to 30 % of its results (16 to 128 of a row, 1.31.1)."""

CUT_ALWAYS = 0.9
"""Share of results that a kernel which never rounds leaves cut off, of those too that rounding puts a step farther: all
but where its own sums cross a whole number. A kernel that rounds otherwise has others on either side."""

SOFTMAX_SHARE = 255.0 / 256.0
"""What ONNX Runtime's integer Softmax (1.31.1) makes of a share, then rounded, where the step is 1/255: of 4 to 64 of a
row 44 to 3 % of what is rounded up it leaves cut off where inputs spread by 1, more where they spread farther; of 2
nearly equal ones all: that factor is half a step there."""

FEWEST_CUT = 16
"""Results that rounding puts a step farther from which on it is told that none is rounded: of so many nine tenths are
cut off by chance once in 4,000 cases."""

CUT_SLACK = 1e-3
"""In steps; a whole number that is computed in float32 is one a little less, of an int8 by a 10^-5th of it at most."""

FEW_CARRY = 0.1
"""Median over RMS of an error below which few elements carry it: the lesser half has less than a hundredth of its
power. It is 0.67 for normally distributed errors and 0.87 for evenly distributed ones."""

LOST = 0.5
"""Relative RMS error of a number format from which an output is lost: half of its signal. No floor is beyond it."""

BUILDS_WITH_THE_REST = 2.0
"""What has to be left of the budget, in builds, for one build more: itself, and all that is asked after it."""

KEPT_SHARE = 0.1
"""Share of the ops that a mixed model is tried with: more than this keeps little of what the format saves."""

WORTH_A_RUN = 0.01
"""Predicted error from which a mixed model is tried: below 1 %, a person asks for no better format."""

HALF_THE_ENERGY = 0.7
"""A mixed model is worth it when less than this of the error is left: half of its energy, which is 3 dB."""

FAR_NEARER = 4.0
"""How much nearer than all others one way of reading a given file must be to be believed. A healthy file is thousands
of times nearer one way. Data in a wrong order moved the outputs of three trained networks 17 to 25 times as far as the
worst weight that is a tenth too large, those of six with drawn weights, which tell inputs apart badly, 0.5 to 11 times:
there some faults leave no way far nearer, and the user is asked. No wrong way came nearer than the right one."""

TOO_COARSE = 0.1
"""Relative error (20 dB below the signal) from which a format that explains it is said to be too coarse for a model; a
build of which more is lost is a bad one beside better ones, even where the format predicts anything at all (an emulated
overflow)."""

CERTAIN = 0.01
"""Relative error at an output that is a failure whatever the floor, on an fp32 engine: 10,000 times what its kernels
err. Below it a floor is measured, which costs runs."""

CARRIED_ON = 2e-7
"""Relative error of a piece of a model below which it is not carried on to the outputs: about ten roundings of one
float32 result, which no other op turns into a failure."""

SUSPECT_RATIO = 2.0
"""Local error over floor from which an op is a suspect (6 dB, twice the gap that rounding explains); influence then
decides, so that a low bar costs time and no wrong verdict."""

DECISIVE = 0.5
"""Share of the output error that injected suspects must reproduce to be blamed for it: as much as all others make. So
of the avoidable squared error of a quantizer that one change must remove to be named as the mistake."""

NEGLIGIBLE = 0.1
"""A suspect whose influence is below this share of the largest is not named: errors add in power, so that it accounts
for a hundredth."""

CURED = 2.0
"""What removes a cause leaves less than half of the error, and an error up to twice what is left is what is left.
"""

FREEDOM_SHOWS = 4.0
"""A freedom shows at a value where its allowance is this many floors (12 dB): only there can be told whether it was
taken."""

FREEDOM_SHARE = 0.5
"""Share of the ops of a type at which a freedom has to show for it to be what the engine does: kernels are written per
operator, so that a freedom taken once is taken nearly everywhere."""

LAYOUT_EVERYWHERE = FREEDOM_SHARE
"""Share of all ops from which a layout is no op's, but how the engine hands out tensors: a habit, like a freedom."""

UNMOVED = 1e-6
"""Share of a value's RMS that an element may move by in the model's own evaluation and still count as unmoved: some
roundings of a float32 result."""

MASKED_APART = 1e3
"""Ratio of neighbouring magnitudes that sets masked scores apart: masks are -1e4, -65504, -1e9 or the like, added to
scores of 1 to 100."""

CONVERSION_EXACT, CONVERSION_FEW = 4.0, 2.0
"""Integers that a converted model may decide otherwise: so many times the share that the emulated format does, and so
many more elements: few decisions come in whole numbers."""

WEIGHTS_ALIKE = 8.0
"""Roundings of its format by which a weight of a file may differ from the network's: a norm that an exporter multiplies
into it rounds four times, and training once more moves every weight by far more."""

MODULES_OTHER = 0.5
"""Share of a network's modules whose weights differ, beyond which the file is of another checkpoint, and not one weight
of it wrong; likewise of a file's modules that a network lacks, beyond which it is another network."""

MODULES_SEEN = 0.9
"""Share of a file's modules of which a result is compared; fewer, and single operations are asked for their values."""

DRAWS_OF_STORED = 3
"""Other roundings of a file's constants that are tried. Over 34 honest quantized files of six networks, their distance
from the network was 0.1 to 1.3 of the larger of two such draws' distances from each other, and 2.1 to 39 over 16 files
with one mistake; a third draw halves the chance that all are small."""

ONLY_ROUNDED = 0.02
"""Mean relative difference of a slice of a weight up to which it is only rounded: int8 moves normally distributed ones
by 1 %."""

RELU6 = 6.0
"""Where a Clip of mobile networks ends, which a quantizer's range takes over (Sandler et al. 2018, "MobileNetV2")."""

MOST = 0.5
"""Share of its elements above which something is told of a constant as a whole: of most, not of some."""

ENOUGH_ELEMENTS = 1000
"""Elements of an output from which on more samples sharpen a comparison by less than a dB: 26 / sqrt(n) dB are allowed
for chance."""

BIAS_KEPT = 1e-5
"""Relative difference up to which a bias is the original's: folding a normalization in float32 moves it by less."""

# -- runs and builds that differ ---------------------------------------------------------------------------------------

RARE_RUN = 0.05
"""Share of runs that a race is looked for in; 59 equal runs exclude it at 95 %."""

LEAST_EQUAL_RUNS = 3
"""Runs that are compared however long they take; of two that differ nobody knows which one is usual."""

LEAST_BUILDS = 2
"""Builds before it is asked whether their kinds are known well enough: one cannot differ."""

LEAST_REPEATS = 5
"""Repeats before the width of the interval may end them: of fewer it says little."""

# -- the smallest failing piece ----------------------------------------------------------------------------------------

SAME_FAILURE = 0.1
"""Share of the whole's error that a piece must account for. Needed nodes far apart each add to the error, and cutting
changes it a little; a failure of another origin is rarely within a factor of ten."""

VANISHED = 1e-3
"""Share of the signal that was there when the case was cut out, below which errors are relative to this share."""

# -- nodes that need bits ----------------------------------------------------------------------------------------------

GROUP_IGNORED = 0.1
"""Ratio (20 dB below the limit) up to which a group is not looked into: a hundred of them fill the limit."""

GROUPS_SPARED = 0.5
"""Ratio (6 dB below the limit) that all groups not yet looked into may reach together for the search to end."""

LARGEST_GROUP = 0.25
"""Share of all nodes above which a region is no group: an engine that makes one kernel of everything says nothing."""

NEEDED_BEYOND_DOUBT = 2.0
"""A node whose rounding alone exceeds the limit by this (6 dB) is needed; no reading is spent on doubting it."""

SAME_ROUNDING = 4.0
"""Ratio (12 dB) up to which an engine's miss is taken for more of the same rounding."""

STRICTER_DB = 1.0
"""How much stricter than the engine's miss the next limit is: a step that is seen, and small."""

EMULATED_CLOSE_DB = 6.0
"""An emulated ratio this far above the limit is taken for the engine's answer too, when both agree elsewhere."""

CANCELS = 100.0
"""Operands this many times the result are named as a cancellation: two decimal digits are gone."""

UNDERFLOW_SHARE = 0.01
"""Share of nonzero elements below the smallest normal number from which underflow is named."""

LOST_ANGLE = 0.1
"""Error of an angle, in radians, from which it is named: a sine of it has no second digit."""

# -- patterns of an error ----------------------------------------------------------------------------------------------

PATTERN_SHARE = 0.9
"""Share of the squared error that a pattern (a transposition, a scale) must account for to be told: what is left is a
tenth, within what rounding to a narrow format adds to it."""

PATTERN_MAJORITY = 0.7
"""Share of the wrong elements whose error a pattern must halve: it holds for most, not for a few that dominate."""

HALVED_BY_CHANCE = 0.4
"""Share of errors that an explanation halves by chance: an independent one of their size halves a sixth of normally
distributed errors and a fifth of evenly distributed ones; where all have one sign, twice as many."""

LOG10_LUCK = -6.0
"""log10 of the chance below which a coincidence is none: once in a million tensors."""

SETTLED = 0.97
"""Strength of a finding about the whole tensor from which the more general ones are not asked for."""

AGREES = 1e-3
"""Share of the energy that may differ where tensors agree in another order of axes: 3 % of their size."""

NO_PATTERN_BELOW = 1.5
"""An error up to this many times the floor is nothing to be dissected: it is what healthy engines make."""

TYPICAL_ERRORS = ((0.5, 16.0), (0.1, 64.0))
"""(quantile of the error taken as typical, how many times that is wrong). For normal noise 11 and 8 standard
deviations. The second, for faults that cover more than half of the elements, is asked when the first finds nothing."""

WRONG_OVER_FLOOR = 8.0
"""How many floors, or double spacings of the format, an element may be off and not be wrong, whatever others are."""

MINORITY = 0.25
"""Share of elements up to which scattered ones are called wrong and the others not; more are noise."""

PERIOD_FILLED = 0.8
"""Share of the places of a period that must be wrong: a right result comes about by chance."""

SAME_NUMBERS = 0.999
"""Share of sorted numbers that must be equal for rows to hold the same ones."""

NEARLY_ALL = 0.99
"""Share of the wrong elements that are in a place for it to be where they are."""

SURELY_MOVED = 0.95
"""Share of the squared error of a slice, and of the tensor, that is gone when moved slices are compared with those that
they are copies of; projections of slices, not elements, are compared."""

SIMPLER_BY = 4.0
"""A fit with fewer parameters is preferred while it leaves at most so many times as much."""

NO_VARIATION, VARIATION = 1e-4, 1e-2
"""Shares of the energy that are variation: below the first there is none but rounding, above the second there is."""

EQUAL_SUMS = 0.02
"""Spread up to which sums along an axis are equal, as a Softmax's in bf16 are; five times as wide they are not."""

EVEN_LEVELS = 0.02
"""In steps: how far evenly spaced values may be off their places; float32 moves 256 of them by less."""

HALF_A_LEVEL = 0.505
"""In steps: how far rounding to such values moves, and a hundredth of that for the rounding of the values."""

SIGN_FLIPPED = 0.01
"""How far a factor may be from -1 for the sign alone to be flipped: rounding to bf16 makes 0.4 %."""

CHANGED_SLICE = 0.05
"""Share of the largest change from which a slice counts as changed; when most are not, it is the place that matters."""

SLICES_OVER_FLOOR = 2.0
"""Factors of slices are told from 1 where one is so many floors away from it."""

CLIPPED_FROM = 0.25
"""Least excess over the bound, as a share of the largest: what is clipped lies beyond it by anything from nothing on, a
rounded constant by one amount."""

FEWEST_ALIKE = 3
"""Elements of which something in common is told; of fewer each is told alone."""

FEWEST_IN_PART = 16
"""Wrong elements from which on a relation to the reference is looked for among them alone."""

FEWEST_PERIODS = 3
"""Repetitions that make a period: of any two indices the second is the first repeated."""

FEWEST_WITH_EXCEPTIONS = 32
"""Of fewer elements no few can be called exceptions, since chance makes some of them larger."""

FEWEST_NOISY = 128
"""Nor of fewer that have any error, where the others have one too: of 3,000 tensors of noise relative to normally
distributed numbers, few stood out in 0.1 % of those with 64 elements, in 0.03 % with 96, and in none with 128."""

FEWEST_VALUES = 8
"""Distinct values from which on it is told that all are numbers of a format: fewer are so by chance."""

HALF_A_SPACING = 0.5001
"""In spacings: how far rounding to nearest moves, and the rounding of that quotient."""

# -- tensors recognised by their values --------------------------------------------------------------------------------

FEWEST_RECOGNISED = 32
"""Elements below which a tensor is too small to be recognised: as many as there are projections."""

FEWEST_DISTINCT = 8
"""Elements other than the commonest value below which a tensor is as good as constant."""

NEARLY_CONSTANT = 1e-3
"""Range as a share of the largest magnitude up to which a tensor is as good as constant too."""

MATCH_FARTHEST = 0.2
"""Relative difference beyond which nothing is a match, however far the others are."""

MATCH_FARTHEST_SORTED = 1e-3
"""The same of sorted values, in which tensors that have nothing to do with each other differ by far less."""

MATCH_SAME = 3e-5
"""Relative difference up to which tensors of the reference hold the same values: float32 rounding of projections."""

MATCH_ALIKE = 1e-3
"""Most that tensors which the target's own error does not tell apart may differ to be called the same."""

MATCH_SCALE = 0.02
"""Relative difference of two RMS up to which there is no factor between tensors; rounding to bf16 makes 0.4 %."""

MATCH_SCALE_DISTANCES, MATCH_ALIKE_DISTANCES = 2.0, 3.0
"""The same as multiples of the distance between two tensors, where that is more; and how many of it apart tensors may
be to be alike. An error moves the RMS, and the distance of a copy, by less than itself."""

MATCH_UNUSUAL = 6.0
"""Matches farther than so many times the median one are not given: rounding leaves true pairs about as near."""

# -- quantizers --------------------------------------------------------------------------------------------------------

WIDE_ENOUGH = 0.9
"""A quantizer without zero point may be symmetric on purpose. Only if its range, were it shifted, would hold this share
of what was observed is the zero point what is missing; a narrower range is a matter of the scale."""

MISREADING_AGREES = 0.995
"""Share of the elements that a misreading must give exactly: a border case may round the other way."""

MISREADING_EXACT = 1e-4
"""Relative difference of floats that are given exactly: four digits, which fp16 does not hold and float32 does."""

HALF_A_STEP = 0.5 + 1e-3
"""In steps; a folded normalization is computed in float32, which moves an int8 by a 10^-5th of the step at most."""

FEWEST_IN_ROW = 9
"""Numbers of a row that can be told from others: at 4 bits one in six lies within half a step of any, and a factor fits
one; so that of a thousand rows of nine a row meets one by chance in one of a thousand cases."""

FAR_IN_STEPS, MOST_FAR = 8.0, 0.1
"""Steps from its original beyond which one number of a quantized weight is another, where no more than this share of
the weight is over a step away. Methods that make up for rounding move many numbers, each by a few steps."""

SMOOTHED_REST = 0.03
"""Relative error that quantizing leaves of a smoothed weight at most, beside its factors: 8 bits with a scale for the
whole weight leave about 2 %, and another weight leaves all of it."""

CHEAP_SHARE = 0.01
"""Share of a model's multiplications below which a product stays float where no integer kernel needs it: it takes
hardly any time, and in 8 bits its rounding reaches the output like any other's. Left float, the classifier of a small
ResNet and the last Conv of a U-Net (0.1 and 0.3 %) take 10 and 45 % off the output error, and no run is slower."""
