"""Forecasts: the dataset of migrations that they are judged by, and how near they come."""
