package kappa.bench;

/** A data point of a series. */
record Point(String series, String name, String unit, double value) {}
