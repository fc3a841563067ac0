/* Everything about a run of elements of a tensor pair, in one visit: what block_metrics.py and finite_block.py compute
 * call by call, for pairs of one floating-point type.
 *
 * A chunk of both sides is taken into the first-level cache, where a few plain loops, which compilers turn into vector
 * instructions, give every figure. Elements that are not finite on both sides are counted and replaced by zeros, which
 * add nothing to any sum or maximum. Errors and relative errors of types of up to 32 bits are rounded to float, as
 * numpy's are, so that maxima, samples and worst elements are the same; all sums are of doubles. As there, blocks whose
 * maxima are out of the range in which float serves are computed in double.
 *
 * Only Python's limited API is used, and its lock is not held while numbers are computed. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* A copy for each generation of processors, of which the loader chooses: without, three times the time. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12
#define FOR_EACH_PROCESSOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif
#ifdef __GNUC__
#define INLINE static inline __attribute__((always_inline)) /* into each copy */
#else
#define INLINE static inline
#endif

#define JOIN_NAMES(one, other) one##other
#define JOIN(one, other) JOIN_NAMES(one, other)

enum { CHUNK = 1024, SPAN = 32, WORST = 5 };
enum { ROW = 4 * CHUNK }; /* elements whose relative errors numpy's pass sums in float */
enum { FLOAT16, BFLOAT16, FLOAT32, FLOAT64, TYPES };
static const int64_t ITEM_SIZE[TYPES] = {2, 2, 4, 8};

typedef struct {
    double error;
    int64_t place;
} Element;

/* Totals of some elements, as block_totals.py names them; maxima of magnitudes are -1 where nothing is finite. */
typedef struct {
    int64_t compared, nonzero_errors, zero_samples, nan_reference, nan_target, inf_reference, inf_target;
    int64_t nonfinite_mismatch;
    double error_sum, error_square_sum, error_max, relative_sum, relative_max, ulp_max;
    double reference_square_sum, target_square_sum, product_sum, reference_max, target_max;
    int64_t samples;
    Element worst[WORST]; /* errors of zero in what is free */
} Totals;

typedef struct {
    int type;
    int64_t stride;         /* every element whose flat index is a multiple of it is sampled, into: */
    double *sample;
    int64_t block;          /* elements that are computed in one type */
    double lowest, highest; /* what the maxima of a block must be between, or zero, for float to serve */
} Job;

typedef struct {
    const void *reference, *target; /* as stored, or without what is not finite */
    const uint8_t *compared;        /* which elements are; NULL for all */
    int64_t size, place;
} Chunk;

INLINE double larger(double one, double other) { return one > other ? one : other; }

INLINE int64_t first_sampled(int64_t place, int64_t stride) { return (stride - place % stride) % stride; }

static void consider(Totals *totals, double error, int64_t place)
{
    Element *worst = totals->worst;
    int at = WORST;
    while (at > 0 && (error > worst[at - 1].error || (error == worst[at - 1].error && place < worst[at - 1].place)))
        at--;
    if (error == 0 || at == WORST)
        return;
    memmove(worst + at + 1, worst + at, (size_t)(WORST - 1 - at) * sizeof(Element));
    worst[at] = (Element){error, place};
}

#define BITS 16
#include "_bits.h"
#define BITS 32
#include "_bits.h"
#define BITS 64
#include "_bits.h"
#define REAL float
#define ABSOLUTE fabsf
#include "_errors.h"
#define REAL double
#define ABSOLUTE fabs
#include "_errors.h"

typedef union {
    uint16_t half[CHUNK];
    uint32_t single[CHUNK];
    uint64_t twice[CHUNK];
    float real[CHUNK];
    double wide[CHUNK];
} Buffer;

static const uint64_t INFINITE[TYPES] = {0x7c00, 0x7f80, 0x7f800000, 0x7ff0000000000000};

INLINE float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

INLINE float from_float16(uint16_t bits)
{
    uint32_t magnitude = (uint32_t)(bits & 0x7fff) << 13, sign = (uint32_t)(bits & 0x8000) << 16, wide;
    /* A subnormal number has no leading 1 in front of its point: one that is written there is taken off again. */
    float subnormal = from_bits(magnitude + (113u << 23)) - from_bits(113u << 23);
    memcpy(&wide, &subnormal, sizeof wide);
    return from_bits(((bits & 0x7c00) ? magnitude + (112u << 23) : wide) | sign);
}

static double value_of(int type, uint64_t bits)
{
    double value;
    if (type == FLOAT16)
        return from_float16((uint16_t)bits);
    if (type != FLOAT64)
        return from_bits((uint32_t)bits << (type == BFLOAT16 ? 16 : 0));
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Largest bits of a magnitude. */
INLINE uint64_t largest_bits(int type, const void *values, int64_t size)
{
    return ITEM_SIZE[type] == 2 ? largest_of_16(values, size)
           : type == FLOAT32    ? largest_of_32(values, size)
                                : largest_of_64(values, size);
}

INLINE double farthest(int type, const Chunk *chunk)
{
    const void *reference = chunk->reference, *target = chunk->target;
    return ITEM_SIZE[type] == 2 ? (double)distance_of_16(reference, target, chunk->size)
           : type == FLOAT32    ? (double)distance_of_32(reference, target, chunk->size)
                                : (double)distance_of_64(reference, target, chunk->size);
}

INLINE void set_aside(int type, Chunk *chunk, Buffer *ours, Buffer *theirs, uint8_t *compared, Totals *totals)
{
    uint64_t alone[2];
    if (ITEM_SIZE[type] == 2) {
        uint16_t found[2];
        set_aside_of_16(chunk, (uint16_t)INFINITE[type], ours->half, theirs->half, compared, found, totals);
        alone[0] = found[0], alone[1] = found[1];
    } else if (type == FLOAT32) {
        uint32_t found[2];
        set_aside_of_32(chunk, (uint32_t)INFINITE[type], ours->single, theirs->single, compared, found, totals);
        alone[0] = found[0], alone[1] = found[1];
    } else {
        set_aside_of_64(chunk, INFINITE[type], ours->twice, theirs->twice, compared, alone, totals);
    }
    if (alone[0])
        totals->reference_max = larger(totals->reference_max, value_of(type, alone[0] - 1));
    if (alone[1])
        totals->target_max = larger(totals->target_max, value_of(type, alone[1] - 1));
    chunk->reference = ours, chunk->target = theirs, chunk->compared = compared;
}

/* Return the values of a chunk of at most 32 bits as floats. */
INLINE const float *as_float(int type, const void *values, int64_t size, Buffer *buffer)
{
    const uint16_t *halves = values;
    if (type == FLOAT32)
        return values;
    if (type == FLOAT16) {
#pragma omp simd
        for (int64_t i = 0; i < size; i++)
            buffer->real[i] = from_float16(halves[i]);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < size; i++)
            buffer->single[i] = (uint32_t)halves[i] << 16;
    }
    return buffer->real;
}

INLINE const double *as_double(const float *values, int64_t size, Buffer *buffer)
{
#pragma omp simd
    for (int64_t i = 0; i < size; i++)
        buffer->wide[i] = values[i];
    return buffer->wide;
}

INLINE void add_equal(const Job *job, const Chunk *chunk, Totals *totals)
{
    Buffer values;
    double squares = job->type == FLOAT64
                         ? sum_of_squares_of_double(chunk->reference, chunk->size)
                         : sum_of_squares_of_float(as_float(job->type, chunk->reference, chunk->size, &values), chunk->size);
    int64_t first = first_sampled(chunk->place, job->stride);
    totals->zero_samples += first < chunk->size ? (chunk->size - 1 - first) / job->stride + 1 : 0;
    totals->reference_square_sum += squares;
    totals->target_square_sum += squares;
    totals->product_sum += squares;
}

INLINE void add_unequal(const Job *job, const Chunk *chunk, int in_double, Totals *totals)
{
    Buffer ours, theirs, wide, their_wide, errors;
    totals->ulp_max = larger(totals->ulp_max, farthest(job->type, chunk));
    if (job->type == FLOAT64) {
        double largest = add_errors_of_double(chunk->reference, chunk->target, chunk->size, errors.wide, totals);
        keep_errors_of_double(errors.wide, largest, chunk, job, totals);
        return;
    }
    const float *reference = as_float(job->type, chunk->reference, chunk->size, &ours);
    const float *target = as_float(job->type, chunk->target, chunk->size, &theirs);
    if (in_double) {
        const double *one = as_double(reference, chunk->size, &wide), *other = as_double(target, chunk->size, &their_wide);
        double largest = add_errors_of_double(one, other, chunk->size, errors.wide, totals);
        keep_errors_of_double(errors.wide, largest, chunk, job, totals);
    } else {
        double largest = add_errors_of_float(reference, target, chunk->size, errors.real, totals);
        keep_errors_of_float(errors.real, largest, chunk, job, totals);
    }
}

static int within(const Job *job, double largest)
{
    return (job->lowest <= largest && largest <= job->highest) || largest <= 0;
}

/* Add a block; return whether float serves, where that is what it was computed in. */
FOR_EACH_PROCESSOR
static int add_block(const Job *job, const char *reference, const char *target, int64_t size, int64_t place, int in_double,
                     Totals *totals)
{
    Buffer ours, theirs;
    uint8_t compared[CHUNK];
    const int type = job->type;
    double error_max = totals->error_max, relative_before = 0, reference_max = -1, target_max = -1;
    int overflows = 0;
    totals->error_max = 0;
    for (int64_t begin = 0; begin < size; begin += CHUNK) {
        const int64_t at = begin * ITEM_SIZE[type], length = size - begin < CHUNK ? size - begin : CHUNK;
        Chunk chunk = {reference + at, target + at, NULL, length, place + begin};
        if (begin % ROW == 0)
            relative_before = totals->relative_sum;
        const int equal = memcmp(chunk.reference, chunk.target, (size_t)(length * ITEM_SIZE[type])) == 0;
        uint64_t largest = largest_bits(type, chunk.reference, length);
        uint64_t their_largest = equal ? largest : largest_bits(type, chunk.target, length);
        const int64_t known = totals->compared;
        if (largest >= INFINITE[type] || their_largest >= INFINITE[type]) {
            set_aside(type, &chunk, &ours, &theirs, compared, totals);
            if (totals->compared == known)
                continue;
            largest = largest_bits(type, chunk.reference, length);
            their_largest = largest_bits(type, chunk.target, length);
        } else {
            totals->compared += length;
        }
        reference_max = larger(reference_max, value_of(type, largest));
        target_max = larger(target_max, value_of(type, their_largest));
        if (equal && chunk.compared == NULL)
            add_equal(job, &chunk, totals);
        else
            add_unequal(job, &chunk, in_double, totals);
        overflows |= !(totals->relative_sum - relative_before <= FLT_MAX);
    }
    const int serves = totals->error_max == 0 || (within(job, totals->error_max) && within(job, reference_max) &&
                                                  within(job, target_max) && !overflows);
    totals->error_max = larger(totals->error_max, error_max);
    totals->reference_max = larger(totals->reference_max, reference_max);
    totals->target_max = larger(totals->target_max, target_max);
    return serves;
}

static void add_blocks(const Job *job, const char *reference, const char *target, int64_t size, int64_t start, Totals *totals)
{
    for (int64_t begin = 0; begin < size; begin += job->block) {
        const int64_t at = begin * ITEM_SIZE[job->type], length = size - begin < job->block ? size - begin : job->block;
        const Totals before = *totals;
        if (!add_block(job, reference + at, target + at, length, start + begin, 0, totals) && job->type != FLOAT64) {
            *totals = before;
            add_block(job, reference + at, target + at, length, start + begin, 1, totals);
        }
    }
}

static PyObject *as_tuple(const Totals *totals)
{
    const Element *worst = totals->worst;
    int count = 0;
    while (count < WORST && worst[count].error != 0)
        count++;
    PyObject *places = PyList_New(count);
    for (int i = 0; places != NULL && i < count; i++) {
        PyObject *item = Py_BuildValue("(dL)", worst[i].error, (long long)worst[i].place);
        if (item == NULL || PyList_SetItem(places, i, item) < 0)
            Py_CLEAR(places);
    }
    if (places == NULL)
        return NULL;
    return Py_BuildValue("LN(LLLLLLLL)(ddddddddddd)", (long long)totals->samples, places, (long long)totals->compared,
                         (long long)totals->nonzero_errors, (long long)totals->zero_samples,
                         (long long)totals->nan_reference, (long long)totals->nan_target,
                         (long long)totals->inf_reference, (long long)totals->inf_target,
                         (long long)totals->nonfinite_mismatch, totals->error_sum, totals->error_square_sum,
                         totals->error_max, totals->relative_sum, totals->relative_max, totals->ulp_max,
                         totals->reference_square_sum, totals->target_square_sum, totals->product_sum,
                         totals->reference_max, totals->target_max);
}

static int fits(const Job *job, const Py_buffer *reference, const Py_buffer *target, const Py_buffer *sample, int64_t start)
{
    if (job->type < 0 || job->type >= TYPES || job->stride < 1 || job->block < 1 || start < 0)
        return 0;
    const int64_t item = ITEM_SIZE[job->type], size = reference->len / item;
    const int64_t room = sample->len / (int64_t)sizeof(double), first = first_sampled(start, job->stride);
    const int64_t sampled = first < size ? (size - 1 - first) / job->stride + 1 : 0;
    const uintptr_t places = (uintptr_t)reference->buf | (uintptr_t)target->buf;
    return reference->len == target->len && reference->len % item == 0 && places % (uintptr_t)item == 0 && sampled <= room &&
           (uintptr_t)sample->buf % sizeof(double) == 0;
}

static PyObject *add_run(PyObject *module, PyObject *arguments)
{
    Job job;
    Py_buffer reference, target, sample;
    long long start, stride, block;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "iy*y*w*LLL(dd)", &job.type, &reference, &target, &sample, &start, &stride, &block,
                          &job.lowest, &job.highest))
        return NULL;
    job.sample = sample.buf, job.stride = stride, job.block = block;
    if (fits(&job, &reference, &target, &sample, start)) {
        Totals totals = {.reference_max = -1, .target_max = -1};
        Py_BEGIN_ALLOW_THREADS
        add_blocks(&job, reference.buf, target.buf, reference.len / ITEM_SIZE[job.type], start, &totals);
        Py_END_ALLOW_THREADS
        result = as_tuple(&totals);
    } else {
        PyErr_SetString(PyExc_ValueError, "both sides must be aligned, of one size and type, with room for the sample");
    }
    PyBuffer_Release(&reference);
    PyBuffer_Release(&target);
    PyBuffer_Release(&sample);
    return result;
}

static PyMethodDef METHODS[] = {
    {"add_run", add_run, METH_VARARGS, "Totals of a run of elements: see _compiled_pass.pyi."},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot SLOTS[] = {{0, NULL}};
static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_compiled_pass", "The metrics pass over pairs of one floating-point type.", 0, METHODS, SLOTS,
    NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__compiled_pass(void) { return PyModuleDef_Init(&MODULE); }
