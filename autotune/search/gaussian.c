/* Gaussian process regression (see gaussian.h) by Cholesky factorization. Matrices are stored by
 * rows. */
#include "autotune/search/gaussian.h"

#include <math.h>
#include <stddef.h>

static double dot(const double *a, const double *b, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

bool mgl_gaussian_factor(double *covariance, int count)
{
    for (int i = 0; i < count; i++) {
        double *row = covariance + (size_t)i * (size_t)count;
        for (int j = 0; j < i; j++) {
            const double *other = covariance + (size_t)j * (size_t)count;
            row[j] = (row[j] - dot(row, other, j)) / other[j];
        }
        double square = row[i] - dot(row, row, i);
        if (!(square > 0))
            return false;
        row[i] = sqrt(square);
    }
    return true;
}

/* L x = y. */
static void solve_lower(const double *factor, int count, const double *y, double *x)
{
    for (int i = 0; i < count; i++) {
        const double *row = factor + (size_t)i * (size_t)count;
        x[i] = (y[i] - dot(row, x, i)) / row[i];
    }
}

void mgl_gaussian_solve(const double *factor, int count, const double *y, double *weights)
{
    solve_lower(factor, count, y, weights);
    for (int i = count - 1; i >= 0; i--) { /* L^T x = weights, in place */
        const double *row = factor + (size_t)i * (size_t)count;
        weights[i] /= row[i];
        for (int j = 0; j < i; j++)
            weights[j] -= row[j] * weights[i];
    }
}

double mgl_gaussian_scale(const double *y, const double *weights, int count)
{
    return dot(y, weights, count) / count;
}

double mgl_gaussian_evidence(const double *factor, int count, double scale)
{
    double sum = -0.5 * count * log(scale);
    for (int i = 0; i < count; i++)
        sum -= log(factor[(size_t)i * (size_t)count + (size_t)i]);
    return sum;
}

mgl_gaussian_point mgl_gaussian_predict(const double *factor, const double *weights, int count,
                                        double scale, const double *to, double own, double *scratch)
{
    solve_lower(factor, count, to, scratch);
    double variance = scale * (own - dot(scratch, scratch, count));
    return (mgl_gaussian_point){dot(to, weights, count), variance > 0 ? sqrt(variance) : 0};
}

double mgl_expected_improvement(mgl_gaussian_point point, double best)
{
    static const double one_by_root_two_pi = 0.39894228040143267794;
    double gain = best - point.mean;
    if (point.deviation <= 0)
        return gain > 0 ? gain : 0;
    double z = gain / point.deviation;
    double below = 0.5 * erfc(-z * M_SQRT1_2), density = one_by_root_two_pi * exp(-0.5 * z * z);
    return gain * below + point.deviation * density;
}
