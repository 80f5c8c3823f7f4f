"""Thin handlers: parse, call one service, map. One module for each resource."""
