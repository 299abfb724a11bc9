/*
 * Gaussian process regression over few points, in closed form (Rasmussen and Williams, "Gaussian
 * Processes for Machine Learning", 2006, algorithm 2.1), and the expected improvement of a point.
 * The caller computes the covariances; this module fits their scale. Used by surrogate.c.
 */
#ifndef MGL_AUTOTUNE_SEARCH_GAUSSIAN_H
#define MGL_AUTOTUNE_SEARCH_GAUSSIAN_H

#include <stdbool.h>

/* Cholesky factorization of a symmetric covariance (count, count), in place. Only the lower half is
 * read. It becomes L with L L^T = covariance. False: the matrix is not positive definite. */
bool mgl_gaussian_factor(double *covariance, int count);

/* weights (count) = covariance^-1 y (count). */
void mgl_gaussian_solve(const double *factor, int count, const double *y, double *weights);

/* The maximum-likelihood scale of the covariance: y . weights / count. */
double mgl_gaussian_scale(const double *y, const double *weights, int count);

/* The log marginal likelihood of y at that scale, up to a constant. Used to compare fits. */
double mgl_gaussian_evidence(const double *factor, int count, double scale);

typedef struct mgl_gaussian_point {
    double mean, deviation;
} mgl_gaussian_point;

/* Posterior at a point. `to` (count): its covariances with the other points. `own`: its variance.
 * `scratch` (count). */
mgl_gaussian_point mgl_gaussian_predict(const double *factor, const double *weights, int count,
                                        double scale, const double *to, double own,
                                        double *scratch);

/* The expected improvement below `best`: (best - mean) Phi(z) + deviation phi(z), with z = (best -
 * mean) / deviation (Jones, Schonlau and Welch, "Efficient Global Optimization of Expensive
 * Black-Box Functions", 1998, equation 15). */
double mgl_expected_improvement(mgl_gaussian_point point, double best);

#endif
