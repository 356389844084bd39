package ast

import "github.com/triremedb/trireme/engine/types"

// MaxDepth is how deep expressions and queries may nest.
const MaxDepth = 4000

// Parse returns the statements of a text. An empty text, or one of comments only,
// gives error 1065 as MySQL does.
func Parse(sql string, mode Mode) ([]Statement, error) {
	return nil, types.NewError(1065, "Query was empty")
}

// ParseParameterized parses a single statement such that the literals that Normalize
// takes out of it become Params with the same indices. The text has no ? of its own.
func ParseParameterized(sql string, mode Mode) (Statement, error) {
	return nil, types.NewError(1065, "Query was empty")
}

// Format returns the canonical text of a node.
func Format(n Node) string { return "" }

// Normalize computes the plan-cache key of a text of one statement into b: the text
// with literals replaced by placeholders of their type, without comments and with
// spaces folded, and the literals in the order of the placeholders. ok is false for
// what is not worth or not fit for caching: several statements, hints, version
// comments, syntax that the lexer does not know, a ? in the text. Nothing is allocated
// once the buffers have grown.
func Normalize(sql string, mode Mode, b *Buffers) (ok bool) { return false }

// Buffers is the memory of Normalize, and its result, valid until the next call. The
// zero Buffers is ready.
type Buffers struct {
	Key []byte
	// Literals are integers, decimals, doubles and strings. Strings alias the text or
	// the Buffers. Types are immutable and shared, but for those of decimals, which
	// lie in the Buffers.
	Literals []Literal
	arena    []byte
	decimals []types.Type
}
