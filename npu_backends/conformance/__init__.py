"""What every adapter must keep, as a kit that its own tests run."""
