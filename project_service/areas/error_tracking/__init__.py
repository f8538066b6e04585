"""Error-tracking settings of projects."""
