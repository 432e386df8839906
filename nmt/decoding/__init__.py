"""Decoding: model and text -> text."""
