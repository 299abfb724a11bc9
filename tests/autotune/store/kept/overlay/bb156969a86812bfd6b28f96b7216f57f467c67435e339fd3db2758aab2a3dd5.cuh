// the first promoted text
