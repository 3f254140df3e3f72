"""The field: all scales and several neighbor graphs in one logit, priors set by evidence."""
