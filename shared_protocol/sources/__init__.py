"""Where models come from: a catalogue, a hub, a server, a package index, a file."""
