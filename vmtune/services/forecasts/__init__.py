"""Forecasts of migrations that are not begun."""
