"""Reports as one HTML page that needs nothing else: no script, no font, no address. All text is escaped where it is written."""
