"""Git over HTTP: fetching, pushing, and the rules and events of pushes."""
