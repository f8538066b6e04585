"""Silences of projects: API, pages, and the job that begins and ends them."""
