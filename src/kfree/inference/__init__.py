"""From a log density to a posterior: priors, modes, quadrature, Laplace. Never labels."""
