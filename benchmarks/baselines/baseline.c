/* Hand-written lane kernels, for comparison: the layout, the tables and the algorithm of the lane engine, in C.
 *
 * Rows of B contiguous doubles, one step moves B lanes. ONE_HOT = 1: features are 1 and each step touches a row of x and
 * a row of x'. ONE_HOT = 0: two non-zeros a state, at most three rows in the union of x and x'. WIDTH is how many rows
 * the table has for each outcome. `GCC ivdep` promises what the engine's scopes promise: the rows of a step differ.
 * Only the learners of the paper that run without a metric. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define LANES _Pragma("GCC ivdep") for (int l = 0; l < B; l++)
#define TINY_SCALE 0x1p-400
#define HUGE_SCALE 0x1p400
#define SMALLEST_SHRINK 0x1p-60
#define LARGEST_SHRINK 0x1p60
#define SELDOM 128
#define DIVERGED 1e100
#if ONE_HOT
#define K 1
#else
#define K 2
#endif

typedef struct {
    const int32_t *column;
    int64_t segments; const int64_t *end; const double *factor; const int64_t *point; const uint8_t *last; const int64_t *step, *episode;
    const uint64_t *rows; const double *x, *x_next, *u; const uint8_t *narrow; const double *reward, *rho, *rho_x, *discount;
    int64_t terms; const uint64_t *term_rows; const double *term_values, *targets; double rest;
    int64_t n_rows;
} Input;

typedef struct {
    double *w, *eta;                                             /* (n_rows, B) */
    double *alpha0, *zeta, *alpha, *beta, *own, *change, *scale; /* (B,); own is kappa or reg */
    double *shrink, *inverse_shrink, *inverse;                   /* (B,) of TDRC */
    double *now, *total, *last_sum, *curve; int64_t *diverged;
} Lanes;

static void set_step_sizes(Lanes *L, double factor) {
    double *alpha = L->alpha, *beta = L->beta;
    const double *alpha0 = L->alpha0, *zeta = L->zeta;
    LANES { alpha[l] = alpha0[l] * factor; beta[l] = zeta[l] * alpha[l]; }
}

static void take_errors(const Input *in, Lanes *L, int64_t s) {
    double *now = L->now, *total = L->total, *last_sum = L->last_sum;
    int64_t *diverged = L->diverged;
    LANES now[l] = in->rest;
    for (int64_t m = 0; m < in->terms; m++) {
        const double *w0 = L->w + in->term_rows[m * K] * B, v0 = in->term_values[m * K], target = in->targets[m];
#if K == 2
        const double *w1 = L->w + in->term_rows[m * K + 1] * B, v1 = in->term_values[m * K + 1];
        LANES { const double gap = w0[l] * v0 + w1[l] * v1 - target; now[l] += gap * gap; }
#else
        LANES { const double gap = w0[l] * v0 - target; now[l] += gap * gap; }
#endif
    }
    LANES {
        const double error = sqrt(now[l]);
        if (!(error <= DIVERGED) && diverged[l] == 0) { diverged[l] = in->step[s]; diverged[B + l] = in->episode[s]; }
        now[l] = diverged[l] == 0 ? error : INFINITY;
    }
    if (in->point[s] >= 0) {
        double *curve = L->curve + in->point[s] * B;
        LANES { total[l] += now[l]; curve[l] += now[l]; }
    }
    if (in->last[s]) LANES last_sum[l] += now[l];
}

/* TDRC shrinks all of eta by shrinking its scale; the inverse of the scale is carried along, so no step divides. */
static inline int64_t look_period(double shrink) {
    const double size = fabs(shrink);
    return size >= 0x1p-2 && size <= 0x1p2 ? 128 : size >= 0x1p-8 && size <= 0x1p8 ? 32 : 4;
}

static int64_t set_shrink(Lanes *L) {
    int64_t every = SELDOM;
    for (int l = 0; l < B; l++) {
        double shrink = 1.0 - L->beta[l] * L->own[l];
        shrink = shrink == 0.0 ? SMALLEST_SHRINK : shrink;
        shrink = fabs(shrink) > LARGEST_SHRINK ? LARGEST_SHRINK : shrink;
        L->shrink[l] = shrink;
        L->inverse_shrink[l] = 1.0 / shrink;
        if (look_period(shrink) < every) every = look_period(shrink);
    }
    return every;
}

static void look_at_scales(const Input *in, Lanes *L, int64_t step) {
    for (int l = 0; l < B; l++) if (!(step & (look_period(L->shrink[l]) - 1))) {
        const double scale = L->scale[l];
        L->inverse[l] = L->inverse[l] * (2.0 - scale * L->inverse[l]);
        if (fabs(scale) > TINY_SCALE && fabs(scale) < HUGE_SCALE) continue;
        L->scale[l] = fabs(scale) < 1.0 ? HUGE_SCALE / 2 : TINY_SCALE * 2;
        L->inverse[l] = 1.0 / L->scale[l];
        for (int64_t r = 0; r < in->n_rows; r++) L->eta[r * B + l] = L->eta[r * B + l] * scale * L->inverse[l];
    }
}

static inline void products(const Input *in, size_t first, size_t coming, double *with_x, double *with_next) {
    *with_x = *with_next = 0;
    for (int i = 0; i < K; i++) for (int j = 0; j < WIDTH; j++) {
        const double shared = in->rows[coming + i] == in->rows[first + j] ? in->x[coming + i] : 0.0;
        *with_x += shared * in->x[first + j];
        *with_next += shared * in->x_next[first + j];
    }
}

/* The rules. */
#define RULE_td          const double w_x = alpha[l] * rho * delta;
#define RULE_gtd2        const double w_x = alpha[l] * (rho_x * x_eta), w_next = -alpha[l] * rho * g * x_eta, eta_x = beta[l] * (rho * delta - x_eta);
#define RULE_tdc         const double w_x = alpha[l] * rho * delta, w_next = -alpha[l] * rho * g * x_eta, eta_x = beta[l] * (rho * delta - x_eta);
#define RULE_tdrc        RULE_tdc
#define RULE_gradient_dd const double w_x = alpha[l] * (rho_x * x_eta - own[l] * x_change), w_next = -alpha[l] * rho * g * x_eta, \
                         eta_x = beta[l] * (rho * delta - x_eta);

/* What a rule needs around it: for each step, before it and after it. */
#define PLAIN_EACH
#define PLAIN_BEFORE
#define PLAIN_AFTER      const double raw_x = eta_x;
#define SCALED_EACH
#define SCALED_BEFORE    x_eta = scale[l] * x_eta;
#define SCALED_AFTER     const double scaled = scale[l] * shrink[l], inverted = inverse[l] * inverse_shrink[l]; \
                         scale[l] = scaled; inverse[l] = inverted; const double raw_x = eta_x * inverted;
#define CHANGE_EACH      products(in, first, (size_t)in->column[t + 1] * WIDTH, &with_x, &with_next);
#define CHANGE_BEFORE    const double x_change = change[l];
#define CHANGE_AFTER     change[l] = w_x * with_x + w_next * with_next; PLAIN_AFTER

#if ONE_HOT
#define WIDE_SIGNALS   const double a = w0[l]; const double delta = r - a + w1[l] * g;
#define NARROW_SIGNALS const double a = w0[l]; const double delta = r + a * (g - 1.0);
#define X_ETA          double x_eta = eta0[l];
#define WIDE_MOVES     w0[l] = a + w_x; w1[l] += w_next;
#define NARROW_MOVES   w0[l] = a + w_x + w_next;
#define ETA_MOVES      eta0[l] += raw_x;
#define TD_MOVES       w0[l] = a + w_x;
#else
#define WIDE_SIGNALS   const double a = w0[l], b = w1[l], c = w2[l]; const double delta = r + a * u0 + b * u1 + c * u2;
#define NARROW_SIGNALS const double a = w0[l], b = w1[l]; const double delta = r + a * u0 + b * u1;
#define X_ETA          double x_eta = eta0[l] * x0 + eta1[l] * x1;
#define NARROW_MOVES   w0[l] = a + w_x * x0 + w_next * n0; w1[l] = b + w_x * x1 + w_next * n1;
#define WIDE_MOVES     NARROW_MOVES w2[l] = c + w_next * n2;
#define ETA_MOVES      eta0[l] += raw_x * x0; eta1[l] += raw_x * x1;
#define TD_MOVES       w0[l] = a + w_x * x0; w1[l] = b + w_x * x1;
#endif

#define KERNEL(NAME, STEADY, EACH, WIDE, NARROW) \
void run_##NAME(const Input *in, Lanes *L) { \
    const double *alpha = L->alpha, *beta = L->beta, *own = L->own; \
    const double *shrink = L->shrink, *inverse_shrink = L->inverse_shrink; \
    double *change = L->change, *scale = L->scale, *inverse = L->inverse, with_x = 0, with_next = 0; \
    int64_t t = 0, every = SELDOM; \
    for (int64_t s = 0; s < in->segments; s++) { \
        set_step_sizes(L, in->factor[s]); \
        if (STEADY) every = set_shrink(L); \
        for (; t < in->end[s]; t++) { \
            const size_t o = in->column[t], first = o * WIDTH; \
            const uint64_t *rows = in->rows + first; \
            const double *xs = in->x + first, *ns = in->x_next + first, *us = in->u + first; \
            const double r = in->reward[o], rho = in->rho[o], rho_x = in->rho_x[o], g = in->discount[o]; \
            double *w0 = L->w + rows[0] * B, *w1 = L->w + rows[1] * B, *w2 = L->w + rows[WIDTH - 1] * B; \
            double *eta0 = L->eta + rows[0] * B, *eta1 = L->eta + rows[1] * B; \
            const double x0 = xs[0], x1 = xs[1], n0 = ns[0], n1 = ns[1], n2 = ns[WIDTH - 1]; \
            const double u0 = us[0], u1 = us[1], u2 = us[WIDTH - 1]; \
            EACH \
            if (in->narrow[o]) { LANES { NARROW } } else { LANES { WIDE } } \
            const int64_t made = in->step[s] - in->end[s] + t + 1; \
            if (STEADY && !(made & (every - 1))) look_at_scales(in, L, made); \
        } \
        if (in->point[s] >= 0 || in->last[s]) take_errors(in, L, s); \
    } \
}
#define GRADIENT(NAME, KIND, STEADY) KERNEL(NAME, STEADY, KIND##_EACH, \
    WIDE_SIGNALS X_ETA KIND##_BEFORE RULE_##NAME KIND##_AFTER WIDE_MOVES ETA_MOVES, \
    NARROW_SIGNALS X_ETA KIND##_BEFORE RULE_##NAME KIND##_AFTER NARROW_MOVES ETA_MOVES)
KERNEL(td, 0, , WIDE_SIGNALS RULE_td TD_MOVES, NARROW_SIGNALS RULE_td TD_MOVES)
GRADIENT(gtd2, PLAIN, 0)
GRADIENT(tdc, PLAIN, 0)
GRADIENT(gradient_dd, CHANGE, 0)
GRADIENT(tdrc, SCALED, 1)
