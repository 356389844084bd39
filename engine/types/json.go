package types

// JSONCodec is what this package needs of JSON documents; types/json provides
// it.
type JSONCodec interface {
	// Parse appends the binary form of the document that text is.
	Parse(dst, text []byte) ([]byte, error)
	// AppendText appends the text of a binary document.
	AppendText(dst, doc []byte) ([]byte, error)
	// Compare orders documents as SQL does: -1, 0 or +1.
	Compare(a, b []byte) int
	// AppendSortKey appends bytes that order as Compare does.
	AppendSortKey(dst, doc []byte) []byte
	// Hash is equal for documents that compare equal.
	Hash(seed uint64, doc []byte) uint64
}

// jsonCodec is set by init functions only.
var jsonCodec JSONCodec

// RegisterJSON sets the codec of JSON values. It is called from init functions
// only. Until then JSON values compare as bytes and have no text.
func RegisterJSON(c JSONCodec) { jsonCodec = c }
