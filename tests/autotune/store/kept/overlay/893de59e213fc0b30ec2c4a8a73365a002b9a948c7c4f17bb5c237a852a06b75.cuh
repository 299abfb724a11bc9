// the second promoted text
