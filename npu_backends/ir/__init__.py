"""The language between compiler and chips: a frozen graph of operations, what each of them means, and how much work it is."""
