// Package ast is the language: the syntax trees of MySQL-dialect statements, the way
// from text to a tree (Parse), from a tree to canonical text (Format), and from text
// to a plan cache's key (Normalize).
//
// # Trees
//
// Nodes are plain structs. A tree says what was written, not what it means: names are
// not resolved, types of strings have no collation yet, ORDER BY 1 is a literal. A tree
// is immutable once Parse has returned it; plans and statements of many sessions share
// it.
//
// # Grammar
//
// The grammar of github.com/pingcap/tidb/pkg/parser does the parsing; nothing of it
// is seen outside. What it lacks is parsed ahead of it by hand; what it accepts beyond
// MySQL's language is refused. Optimizer hints are read
// after a statement's first word only.
//
// # Invariants
//
//   - No text makes a function of this package panic, recurse without bound or take
//     memory out of proportion; MaxDepth limits nesting.
//   - Parse(Format(x)) equals x but for statements' and select items' own text.
//   - Two texts with the same key of Normalize differ in the values of literals only,
//     and ParseParameterized turns exactly those literals into Params, in order.
//
// DESIGN.md says how.
//
// # What it does not do
//
// It knows no catalogue, no variables but the sql_mode that changes the grammar, and
// no plans.
package ast

import "github.com/triremedb/trireme/engine/types"

// Mode is what changes what a text means: flags of sql_mode, and in the topmost byte the character set that the text came in.
type Mode uint32

const (
	ModeANSIQuotes         Mode = 1 << iota // "x" is a name
	ModeNoBackslashEscapes                  // a backslash in a string is a character
	ModePipesAsConcat                       // || concatenates
	ModeIgnoreSpace                         // names of functions may be followed by spaces
	ModeHighNotPrecedence                   // NOT binds as !
	ModeRealAsFloat                         // REAL is FLOAT
	// Which dates DATE'..' and TIMESTAMP'..' may be. These do not change what a text means, only whether it is refused.
	ModeNoZeroDate
	ModeNoZeroInDate
	ModeAllowInvalidDates
)

const modeClientShift = 24

// WithClient returns the mode for texts that have come in a character set and were made UTF-8: the bytes of a string with an
// introducer are those that came. Texts that came in UTF-8 have no mark.
func (m Mode) WithClient(cs types.Charset) Mode {
	if m &= 1<<modeClientShift - 1; cs.IsUTF8() {
		return m
	}
	return m | Mode(cs)<<modeClientShift
}

func (m Mode) client() types.Charset { return types.Charset(m >> modeClientShift) }

// Node is any node of a tree.
type Node interface{ node() }

// Statement is the root of a tree.
type Statement interface {
	Node
	// Text is the statement's own part of the text that was parsed, without the
	// semicolon.
	Text() string
	// Params is the number of ? in the statement, whose indices are 0 to Params-1.
	Params() int
	// HintsElsewhere are optimizer hints at other blocks of the statement than its own. They do nothing.
	HintsElsewhere() []Hint
	// Size is about how many bytes the tree takes, with its text; 0 for one that no text was parsed for.
	Size() int64
}

// Query is what gives rows: *Select, *SetOp or *Values.
type Query interface {
	Statement
	query()
}

// Expr is an expression.
type Expr interface {
	Node
	expr()
}

// TableExpr is what stands in FROM: *TableRef, *Derived, *JSONTable or *Join.
type TableExpr interface {
	Node
	tableExpr()
}

// source is what all statements have.
type source struct {
	text   string
	params int
	size   int64

	elsewhere []Hint
}

func (*source) node()          {}
func (s *source) Text() string { return s.text }
func (s *source) Params() int  { return s.params }
func (s *source) Size() int64  { return s.size }
func (s *source) src() *source { return s }

func (s *source) HintsElsewhere() []Hint { return s.elsewhere }
