"""Operations that are bound by memory joined to the matrix products beside them, so that what lies between never leaves the chip."""
