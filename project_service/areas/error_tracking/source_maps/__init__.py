"""Frames of minified code resolved by source maps."""
