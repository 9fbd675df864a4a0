"""What makes a text private: detectors over one linear scan."""
