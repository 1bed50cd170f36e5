/* Gradient-DD on transitions with K features each, by hand, for comparison with `Learner.update_many`.
 *
 * w and eta of a feature stand beside each other, and the rows that come AHEAD steps later are fetched. The change of w
 * in the last step is kept as two coefficients: x·(w − w_prev) follows from the features that two steps share. Nothing
 * is checked. */
#include <stdint.h>

void run(double *restrict memory, int64_t n, const int64_t *restrict x_at, const double *restrict x, const int64_t *restrict next_at,
         const double *restrict x_next, const double *restrict reward, const double *restrict discount,
         const double *restrict rho, double alpha, double beta, double kappa, double *restrict deltas) {
    double last_x = 0, last_next = 0;
    for (int64_t t = 0; t < n; t++) {
        const int64_t *i = x_at + t * K, *i_next = next_at + t * K, *i_last = i - K, *i_last_next = i_next - K;
        const double *v = x + t * K, *v_next = x_next + t * K, *v_last = v - K, *v_last_next = v_next - K;
        if (t + AHEAD < n) for (int j = 0; j < K; j++) {
            __builtin_prefetch(memory + 2 * i[AHEAD * K + j], 1);
            __builtin_prefetch(memory + 2 * i_next[AHEAD * K + j], 1);
        }
        double x_w = 0, next_w = 0, x_eta = 0, x_change = 0;
        for (int j = 0; j < K; j++) { x_w += v[j] * memory[2 * i[j]]; x_eta += v[j] * memory[2 * i[j] + 1]; }
        if (discount[t] != 0) for (int j = 0; j < K; j++) next_w += v_next[j] * memory[2 * i_next[j]];
        if (t) for (int j = 0; j < K; j++) {
            double change = 0;
            for (int m = 0; m < K; m++) {
                change += i[j] == i_last[m] ? last_x * v_last[m] : 0.0;
                change += i[j] == i_last_next[m] ? last_next * v_last_next[m] : 0.0;
            }
            x_change += v[j] * change;
        }
        const double delta = reward[t] + discount[t] * next_w - x_w;
        last_x = alpha * (rho[t] * x_eta - kappa * x_change);
        last_next = -alpha * rho[t] * discount[t] * x_eta;
        const double eta_x = beta * (rho[t] * delta - x_eta);
        for (int j = 0; j < K; j++) { memory[2 * i[j]] += last_x * v[j]; memory[2 * i[j] + 1] += eta_x * v[j]; }
        if (last_next != 0) for (int j = 0; j < K; j++) memory[2 * i_next[j]] += last_next * v_next[j];
        deltas[t] = delta;
    }
}
