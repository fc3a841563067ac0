/* Sums, maxima and errors of finite values: a template, included once for each type REAL that errors are rounded to. */

#define NAMED(name) JOIN(JOIN(name, _of_), REAL)

/* Write the errors of a chunk and add everything that is made of them; return the largest. */
INLINE double NAMED(add_errors)(const REAL *reference, const REAL *target, int64_t size, REAL *errors, Totals *totals)
{
    double error_sum = 0, relative_sum = 0, error_squares = 0, squares = 0, their_squares = 0, products = 0;
    REAL error_max = 0, relative_max = 0;
    int32_t nonzero = 0;
#pragma omp simd reduction(max : error_max, relative_max) \
    reduction(+ : error_sum, relative_sum, error_squares, squares, their_squares, products, nonzero)
    for (int64_t i = 0; i < size; i++) {
        REAL one = reference[i], other = target[i];
        REAL error = ABSOLUTE(other - one), magnitude = ABSOLUTE(one);
        REAL relative = error / (magnitude == 0 ? (REAL)DBL_EPSILON : magnitude);
        double wide = one, their_wide = other, wide_error = error;
        errors[i] = error;
        error_max = error > error_max ? error : error_max;
        relative_max = relative > relative_max ? relative : relative_max;
        nonzero += error != 0;
        error_sum += wide_error;
        relative_sum += relative;
        error_squares += wide_error * wide_error;
        squares += wide * wide;
        their_squares += their_wide * their_wide;
        products += wide * their_wide;
    }
    totals->nonzero_errors += nonzero;
    totals->error_sum += error_sum;
    totals->error_square_sum += error_squares;
    totals->error_max = larger(totals->error_max, error_max);
    totals->relative_sum += relative_sum;
    totals->relative_max = larger(totals->relative_max, relative_max);
    totals->reference_square_sum += squares;
    totals->target_square_sum += their_squares;
    totals->product_sum += products;
    return error_max;
}

/* Remember the largest errors and the sampled ones. At least WORST errors reach the lowest of the largest maxima of spans,
 * so that few elements are looked at. Of equal errors the first stay, so those that come later must be larger; but for
 * infinite ones, which the mismatches of this chunk have been compared with already. */
INLINE void NAMED(keep_errors)(const REAL *errors, double largest, const Chunk *chunk, const Job *job, Totals *totals)
{
    const Element *least = &totals->worst[WORST - 1];
    if (largest > least->error || largest == INFINITY) {
        REAL maxima[CHUNK / SPAN], best[WORST] = {0};
        for (int64_t begin = 0; begin < chunk->size; begin += SPAN) {
            const int64_t end = begin + SPAN < chunk->size ? begin + SPAN : chunk->size;
            REAL maximum = 0, lower;
#pragma omp simd reduction(max : maximum)
            for (int64_t i = begin; i < end; i++)
                maximum = errors[i] > maximum ? errors[i] : maximum;
            maxima[begin / SPAN] = maximum;
            for (int rank = 0; rank < WORST; rank++)
                if (maximum > best[rank])
                    lower = best[rank], best[rank] = maximum, maximum = lower;
        }
        for (int64_t begin = 0; begin < chunk->size; begin += SPAN) {
            const int64_t end = begin + SPAN < chunk->size ? begin + SPAN : chunk->size;
            if (maxima[begin / SPAN] < best[WORST - 1] || maxima[begin / SPAN] < least->error)
                continue;
            for (int64_t i = begin; i < end; i++)
                if (errors[i] >= best[WORST - 1] && (errors[i] > least->error || errors[i] == INFINITY))
                    consider(totals, errors[i], chunk->place + i);
        }
    }
    for (int64_t i = first_sampled(chunk->place, job->stride); i < chunk->size; i += job->stride)
        if (chunk->compared == NULL || chunk->compared[i])
            job->sample[totals->samples++] = errors[i];
}

INLINE double NAMED(sum_of_squares)(const REAL *values, int64_t size)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < size; i++)
        sum += (double)values[i] * values[i];
    return sum;
}

#undef NAMED
#undef REAL
#undef ABSOLUTE
