package types

// CorruptError says that stored or encoded bytes do not form a value of their
// type. It never concerns what a client sent.
type CorruptError struct {
	What   string // what was being decoded, e.g. "key part", "type"
	Reason string
}

func (e *CorruptError) Error() string { return "corrupt " + e.What + ": " + e.Reason }
