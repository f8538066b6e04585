"""Archive container: format, reader, writer, extraction, diff, inspection."""
