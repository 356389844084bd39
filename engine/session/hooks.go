package session

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
)

// What the statements ask of schemas that are made up.

// virtualSchema finds a schema that is made up, whose name has any case.
func virtualSchema(name string) (string, bool) { return "", false }

// virtualTable finds a table of such a schema, nil if there is none.
func virtualTable(schema, name string) *catalog.Virtual { return nil }

// runShow runs SHOW, DESCRIBE and table maintenance.
func (s *Session) runShow(st ast.Statement) (Outcome, error) { return Outcome{}, unknownStatement(st) }
