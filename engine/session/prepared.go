package session

import "github.com/triremedb/trireme/engine/types"

// Prepared is a prepared statement. It belongs to its session.
type Prepared struct {
	// Params is the number of parameters.
	Params int
	// Columns describes the row set, nil if the statement has none. It may differ from
	// what an execution gives, after tables have changed or where a parameter decides.
	Columns []ResultColumn
	// ID is the door's own.
	ID uint32
}

// Close forgets the statement.
func (p *Prepared) Close() {}

// Arg is the value of a parameter. Strings are in the client's character set unless
// Type says that they are bytes.
type Arg struct {
	Value types.Value
	Type  *types.Type // as the client declared it
}
