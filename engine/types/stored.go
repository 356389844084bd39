package types

// AppendStored appends the form in which rows keep the value: the fixed
// encoding for types that have one, else the bytes of the string or document as
// they are, whose length the row must remember. NULL has no stored form.
// REQUIRES: v is not NULL and is a valid value of t, as from [Context.Store].
func AppendStored(dst []byte, v Value, t *Type) []byte {
	if v.class == ClassBytes && t.Kind != KindBinary || v.class == ClassJSON {
		return append(dst, v.Bytes()...)
	}
	return appendFixed(dst, v, t)
}

// DecodeStored reads a value of which b is the whole stored form. Strings and
// documents alias b. The error is a [CorruptError]. It allocates only for
// DECIMAL values beyond 38 digits, see [Vector.AppendStored].
func DecodeStored(b []byte, t *Type) (Value, error) {
	size, fixed := FixedSize(t)
	switch {
	case !fixed && t.Kind == KindJSON:
		return NewJSON(b), nil
	case !fixed:
		return NewBytes(b), nil
	case len(b) != size:
		return Null, corrupt(t, "wrong length")
	case t.Kind == KindBinary:
		return NewBytes(b), nil
	}
	return decodeFixed(b, t)
}
