"""What errors show and cause in other areas."""
