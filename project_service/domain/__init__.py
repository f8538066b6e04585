"""Models and finders shared by areas, and the services that several areas need."""
