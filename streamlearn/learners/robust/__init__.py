"""Learners that stay right when part of the stream is wrong."""
