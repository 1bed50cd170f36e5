/* TD(λ), TDC(λ) and GTD2(λ) for B lanes that share one trace: what `bench --traces` compares the traced kernel with.
 *
 * The layout is the engine's: lane l of weight row i is w[i * B + l], an outcome lists the rows of x and x', and the trace
 * is a vector with a list of its non-zeros, which drops what is below 2^-53 of its largest entry. */

#include <math.h>
#include <stdint.h>

enum { TD, TDC, GTD2 };

typedef struct {
    const int32_t *column;
    const uint64_t *rows;
    const double *x, *x_next, *u, *reward, *rho, *discount, *alpha, *beta;
    int64_t steps, width;
    double lam;
    double *w, *eta, *z;
    int64_t *list;
    int8_t *mark;
} Work;

static inline void add(double *restrict sums, const double *restrict row, double value) {
    for (int l = 0; l < B; l++) sums[l] += row[l] * value;
}

static void run(const Work *k, int kind) {
    double delta[B], x_eta[B], z_eta[B], along[B], along_next[B], eta_z[B], eta_x[B];
    double size = 0.0, before = 0.0;
    int64_t count = 0;
    for (int64_t t = 0; t < k->steps; t++) {
        int64_t o = k->column[t], first = o * k->width;
        const uint64_t *rows = k->rows + first;
        const double *x = k->x + first, *x_next = k->x_next + first, *u = k->u + first;
        double decay = k->rho[o] * before * k->lam, gain = k->rho[o], discount = k->discount[o];
        double bound = 0x1p-53 * fabs(decay) * size;
        int64_t kept = 0;
        size = 0.0;
        for (int64_t i = 0; i < count; i++) {
            int64_t row = k->list[i];
            double value = k->z[row] * decay;
            if (!(fabs(value) <= bound)) {
                k->list[kept++] = row;
                k->z[row] = value;
                size = fmax(size, fabs(value));
            } else {
                k->z[row] = 0.0;
                k->mark[row] = 0;
            }
        }
        count = kept;
        for (int j = 0; j < k->width; j++)
            if (gain * x[j] != 0.0) {
                if (!k->mark[rows[j]]) k->mark[rows[j]] = 1, k->list[count++] = rows[j];
                k->z[rows[j]] += gain * x[j];
                size = fmax(size, fabs(k->z[rows[j]]));
            }
        before = discount;
        for (int l = 0; l < B; l++) delta[l] = k->reward[o], x_eta[l] = z_eta[l] = 0.0;
        for (int j = 0; j < k->width; j++) {
            if (u[j] != 0.0) add(delta, k->w + rows[j] * B, u[j]);
            if (kind != TD && x[j] != 0.0) add(x_eta, k->eta + rows[j] * B, x[j]);
        }
        if (kind != TD)
            for (int64_t i = 0; i < count; i++) add(z_eta, k->eta + k->list[i] * B, k->z[k->list[i]]);
        for (int l = 0; l < B; l++) {
            along[l] = k->alpha[l] * (kind == GTD2 ? x_eta[l] : delta[l]);
            along_next[l] = -k->alpha[l] * ((1.0 - k->lam) * discount) * z_eta[l];
            eta_z[l] = k->beta[l] * delta[l];
            eta_x[l] = -k->beta[l] * x_eta[l];
        }
        if (kind != TD) {
            for (int j = 0; j < k->width; j++) {
                if (x[j] != 0.0) {
                    if (kind == GTD2) add(k->w + rows[j] * B, along, x[j]);
                    add(k->eta + rows[j] * B, eta_x, x[j]);
                }
                if (x_next[j] != 0.0) add(k->w + rows[j] * B, along_next, x_next[j]);
            }
            for (int64_t i = 0; i < count; i++) add(k->eta + k->list[i] * B, eta_z, k->z[k->list[i]]);
        }
        if (kind != GTD2)
            for (int64_t i = 0; i < count; i++) add(k->w + k->list[i] * B, along, k->z[k->list[i]]);
    }
}

void run_td(const Work *k) { run(k, TD); }
void run_tdc(const Work *k) { run(k, TDC); }
void run_gtd2(const Work *k) { run(k, GTD2); }
