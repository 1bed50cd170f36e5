/* TD(lambda) of many questions on one stream of binary features, by hand, for comparison with `Questions.update_many`.
 *
 * The same layout: w[feature][slot], the questions of a group contiguous, one trace for each group, its non-zero features
 * in one ordered list. x and x' are read in one pass. Sums are made in double precision. Nothing is checked. */
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef float number;

void run(number *restrict w, int64_t slots, int64_t groups, const int64_t *begin, const double *gamma, double lam,
         double alpha, const int64_t *features, int64_t k, int64_t n, const double *reward, double *z, int64_t *list,
         int64_t *count, int64_t *spare, double *restrict here, double *restrict there, number *restrict by) {
    for (int64_t t = 0; t < n; t++) {
        const int64_t *x = features + t * k, *x_next = x + k;
        memset(here, 0, slots * sizeof(double));
        memset(there, 0, slots * sizeof(double));
        for (int64_t a = 0, b = 0; a < k || b < k;) {
            const int in_x = a < k && (b >= k || x[a] <= x_next[b]), in_next = b < k && (a >= k || x_next[b] <= x[a]);
            const number *restrict row = w + (in_x ? x[a] : x_next[b]) * slots;
            if (in_x && in_next) for (int64_t q = 0; q < slots; q++) { here[q] += row[q]; there[q] += row[q]; }
            else if (in_x) for (int64_t q = 0; q < slots; q++) here[q] += row[q];
            else for (int64_t q = 0; q < slots; q++) there[q] += row[q];
            a += in_x;
            b += in_next;
        }
        int64_t made = 0, kept = 0;
        double largest[64] = {0};
        for (int64_t a = 0, b = 0; a < *count || b < k;) {
            const int old = a < *count && (b >= k || list[a] <= x[b]), new = b < k && (a >= *count || x[b] <= list[a]);
            const int64_t i = old ? list[a] : x[b];
            for (int64_t g = 0; g < groups; g++) {
                z[i * groups + g] = z[i * groups + g] * (t ? gamma[g] * lam : 0) + new;
                largest[g] = fmax(largest[g], fabs(z[i * groups + g]));
            }
            spare[made++] = i;
            a += old;
            b += new;
        }
        for (int64_t j = 0; j < made; j++) {
            int alive = 0;
            for (int64_t g = 0; g < groups; g++) {
                double *one = z + spare[j] * groups + g;
                if (fabs(*one) <= largest[g] * 0x1p-24) *one = 0;
                alive |= *one != 0;
            }
            if (alive) list[kept++] = spare[j];
        }
        *count = kept;
        for (int64_t g = 0; g < groups; g++)
            for (int64_t q = begin[g]; q < begin[g + 1]; q++)
                by[q] = (number)(alpha * (reward[t * slots + q] + gamma[g] * there[q] - here[q]));
        for (int64_t j = 0; j < kept; j++)
            for (int64_t g = 0; g < groups; g++) {
                const number value = (number)z[list[j] * groups + g];
                number *restrict row = w + list[j] * slots;
                if (value != 0) for (int64_t q = begin[g]; q < begin[g + 1]; q++) row[q] += by[q] * value;
            }
    }
}
