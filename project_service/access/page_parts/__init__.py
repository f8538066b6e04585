"""What pages of all areas have in common: panels, navigation, tabs, messages after saving."""
