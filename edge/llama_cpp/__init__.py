"""llama.cpp as a runtime of the device, through the C functions of a library that is installed beside us."""
