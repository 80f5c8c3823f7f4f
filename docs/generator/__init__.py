"""Writes the reference pages of the documentation from the tables that the code works by.

The pages are made when the documentation is built (:mod:`docs.generator.hook`) and are not
committed, so they cannot be out of date, and a change of a table is a change in one place.
"""
