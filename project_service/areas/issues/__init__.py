"""Issues of projects and the notes under them."""
