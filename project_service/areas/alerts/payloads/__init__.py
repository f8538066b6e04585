"""Payloads of monitoring tools: their elements, values, words and mapping."""
