"""Muffled semi-supervised learning: one file an algorithm."""
