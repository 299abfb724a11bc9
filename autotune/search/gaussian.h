/*
 * A Gaussian process over few points: regression with its uncertainty, in closed form
 * (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, algorithm 2.1), and
 * the improvement that is expected of a point. The caller makes the covariances; their scale is
 * fitted here.
 */
#ifndef MGL_AUTOTUNE_SEARCH_GAUSSIAN_H
#define MGL_AUTOTUNE_SEARCH_GAUSSIAN_H

#include <stdbool.h>

/* Factors the covariance (count, count), symmetric, of which the lower half is read, in place:
 * its lower half becomes L with L L^T = covariance. False: it is not positive definite. */
bool mgl_gaussian_factor(double *covariance, int count);

/* weights (count) = covariance^-1 y (count). */
void mgl_gaussian_solve(const double *factor, int count, const double *y, double *weights);

/* The scale of the covariance under which y is the most likely: y . weights / count. */
double mgl_gaussian_scale(const double *y, const double *weights, int count);

/* log p(y) at that scale, up to a constant: what fits of covariances are compared by. */
double mgl_gaussian_evidence(const double *factor, int count, double scale);

typedef struct mgl_gaussian_point {
    double mean, deviation;
} mgl_gaussian_point;

/* At a point with covariances `to` (count) to the others and `own` with itself. `scratch`
 * (count). */
mgl_gaussian_point mgl_gaussian_predict(const double *factor, const double *weights, int count,
                                        double scale, const double *to, double own,
                                        double *scratch);

/* How much lower than `best` the point is expected to be, where it is lower: (best - mean) Phi(z) +
 * deviation phi(z), z = (best - mean) / deviation (Jones, Schonlau and Welch, "Efficient Global
 * Optimization of Expensive Black-Box Functions", 1998, equation 15). */
double mgl_expected_improvement(mgl_gaussian_point point, double best);

#endif
