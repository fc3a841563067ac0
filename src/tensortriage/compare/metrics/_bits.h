/* What bits alone tell of BITS-wide floats: a template, included once for each width.
 *
 * The bits of a magnitude, read as an integer, count the representable numbers up to it (ulp.py). */

#define UNSIGNED JOIN(JOIN(uint, BITS), _t)
#define SIGNED JOIN(JOIN(int, BITS), _t)
#define NAMED(name) JOIN(JOIN(name, _of_), BITS)
#define MAGNITUDE ((UNSIGNED)((UNSIGNED)-1 >> 1))

INLINE UNSIGNED NAMED(largest)(const UNSIGNED *values, int64_t size)
{
    UNSIGNED largest = 0;
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < size; i++) {
        UNSIGNED bits = values[i] & MAGNITUDE;
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

/* How many representable numbers lie between zero and a value, negative where the value is. */
INLINE SIGNED NAMED(rank)(UNSIGNED bits)
{
    UNSIGNED negative = (UNSIGNED)((SIGNED)bits >> (BITS - 1)); /* all ones, or zero */
    return (SIGNED)(UNSIGNED)(((bits & MAGNITUDE) ^ negative) - negative);
}

INLINE UNSIGNED NAMED(distance)(const UNSIGNED *reference, const UNSIGNED *target, int64_t size)
{
    UNSIGNED farthest = 0;
#pragma omp simd reduction(max : farthest)
    for (int64_t i = 0; i < size; i++) {
        SIGNED one = NAMED(rank)(reference[i]), other = NAMED(rank)(target[i]);
        UNSIGNED apart = one > other ? (UNSIGNED)one - (UNSIGNED)other : (UNSIGNED)other - (UNSIGNED)one;
        farthest = apart > farthest ? apart : farthest;
    }
    return farthest;
}

/* Count what is not finite, of which `infinite` are the least bits, and write the rest, zeros in place of elements that
 * are not finite on both sides; `alone` gets 1 + the largest bits of each side that only this side has finite, or 0. */
INLINE void NAMED(set_aside)(const Chunk *chunk, UNSIGNED infinite, UNSIGNED *ours, UNSIGNED *theirs, uint8_t *compared,
                             UNSIGNED alone[2], Totals *totals)
{
    const UNSIGNED *reference = chunk->reference, *target = chunk->target;
    UNSIGNED alone_here = 0, alone_there = 0; /* and counts, of no more than CHUNK, in as many bits, for one vector */
    UNSIGNED both = 0, nans = 0, their_nans = 0, infinities = 0, their_infinities = 0, mismatches = 0;
#pragma omp simd reduction(max : alone_here, alone_there) \
    reduction(+ : both, nans, their_nans, infinities, their_infinities, mismatches)
    for (int64_t i = 0; i < chunk->size; i++) {
        UNSIGNED one = reference[i] & MAGNITUDE, other = target[i] & MAGNITUDE;
        UNSIGNED nan = one > infinite, their_nan = other > infinite;
        UNSIGNED finite = one < infinite, their_finite = other < infinite, keep = finite & their_finite;
        UNSIGNED same = (reference[i] == target[i]) | (nan & their_nan); /* two NaNs are the same */
        UNSIGNED here = finite & !their_finite ? one + 1 : 0, there = their_finite & !finite ? other + 1 : 0;
        compared[i] = (uint8_t)keep;
        ours[i] = keep ? reference[i] : 0;
        theirs[i] = keep ? target[i] : 0;
        alone_here = here > alone_here ? here : alone_here;
        alone_there = there > alone_there ? there : alone_there;
        both += keep;
        nans += nan;
        their_nans += their_nan;
        infinities += one == infinite;
        their_infinities += other == infinite;
        mismatches += (keep | same) ^ 1;
    }
    alone[0] = alone_here;
    alone[1] = alone_there;
    totals->compared += both;
    totals->nan_reference += nans;
    totals->nan_target += their_nans;
    totals->inf_reference += infinities;
    totals->inf_target += their_infinities;
    totals->nonfinite_mismatch += mismatches;
    for (int64_t i = 0; mismatches > 0 && i < chunk->size && totals->worst[WORST - 1].error < INFINITY; i++) {
        UNSIGNED one = reference[i] & MAGNITUDE, other = target[i] & MAGNITUDE;
        if (!compared[i] && reference[i] != target[i] && !(one > infinite && other > infinite))
            consider(totals, INFINITY, chunk->place + i);
    }
}

#undef UNSIGNED
#undef SIGNED
#undef NAMED
#undef MAGNITUDE
#undef BITS
