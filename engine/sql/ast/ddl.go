package ast

import "github.com/triremedb/trireme/engine/types"

// Unspecified is the Length or Decimals of a type that gives none.
const Unspecified = -1

// ColumnType is a type as written. Aliases are resolved (INTEGER, BOOL, NUMERIC,
// REAL, NCHAR, LONG ..); what a missing length, character set or collation means is
// decided by the catalogue.
type ColumnType struct {
	Kind     types.Kind
	Length   int // or precision, display width; FSP of temporal types
	Decimals int // scale of DECIMAL, FLOAT(M,D), DOUBLE(M,D)
	Unsigned bool
	ZeroFill bool
	Binary   bool     // attribute BINARY: the _bin collation of the character set
	Charset  string   // CHARACTER SET, lower case; "binary" turns text into bytes
	Collate  string   // COLLATE
	Members  []string // ENUM, SET
	// Serial is SERIAL: BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE; the
	// column's other fields say so too.
	Serial bool
}

// CreateSchema is CREATE DATABASE.
type CreateSchema struct {
	source
	Name        string
	IfNotExists bool
	Charset     string
	Collate     string
	Encryption  string // 'Y', 'N' or empty
}

// AlterSchema is ALTER DATABASE. An empty name means the current schema.
type AlterSchema struct {
	source
	Name       string
	Charset    string
	Collate    string
	Encryption string // 'Y', 'N' or empty
}

// DropSchema is DROP DATABASE.
type DropSchema struct {
	source
	Name     string
	IfExists bool
}

// CreateTable is CREATE TABLE.
type CreateTable struct {
	source
	Table       TableName
	Temporary   bool
	IfNotExists bool
	Like        *TableName
	Columns     []ColumnDef
	Indexes     []IndexDef
	ForeignKeys []ForeignKey
	Checks      []Check // of the table; columns have their own
	Options     []TableOption
	// Query is CREATE TABLE .. SELECT.
	Query   Query
	Ignore  bool
	Replace bool
}

// ColumnNull is what a column says of NULL.
type ColumnNull uint8

const (
	NullUnspecified ColumnNull = iota
	NullAllowed
	NotNull
)

// ColumnDef defines a column.
type ColumnDef struct {
	Name          string
	Type          ColumnType
	Null          ColumnNull
	Default       Expr // nil if not given; a constant, CURRENT_TIMESTAMP or an expression
	DefaultExpr   bool // DEFAULT (expression)
	OnUpdate      Expr // current_timestamp
	AutoIncrement bool
	PrimaryKey    bool
	Unique        bool
	Comment       string
	Generated     Expr // GENERATED ALWAYS AS
	Stored        bool
	Invisible     bool
	Checks        []Check
	References    *Reference // a foreign key of this column
	Kept          []string   // names of options that mean nothing
}

// IndexKind is the kind of an index.
type IndexKind uint8

const (
	IndexPlain IndexKind = iota
	IndexPrimary
	IndexUnique
	IndexFullText
	IndexSpatial
)

// IndexDef defines an index.
type IndexDef struct {
	Kind         IndexKind
	Name         string // empty if not given; CONSTRAINT's name if there is no other
	Parts        []IndexPart
	Using        string // BTREE, HASH or empty
	Comment      string
	KeyBlockSize uint64
	Parser       string
	Invisible    bool
	IfNotExists  bool
}

// IndexPart is a column with a prefix length, or an expression.
type IndexPart struct {
	Column string
	Length int // 0: the whole column
	Desc   bool
	Expr   Expr // functional key part; Column is empty
}

// ForeignKey defines a foreign key.
type ForeignKey struct {
	Name      string // CONSTRAINT's name or that of the index, else empty
	Columns   []string
	Reference Reference
}

// Action is what happens to referencing rows.
type Action uint8

const (
	ActionDefault Action = iota // not given: as NO ACTION
	ActionRestrict
	ActionCascade
	ActionSetNull
	ActionNoAction
	ActionSetDefault
)

// Reference is REFERENCES table (columns) ..
type Reference struct {
	Table    TableName
	Columns  []string
	Match    string // FULL, PARTIAL, SIMPLE or empty
	OnDelete Action
	OnUpdate Action
}

// Check is a CHECK constraint.
type Check struct {
	Name        string
	Expr        Expr
	NotEnforced bool
}

// TableOption is an option of a table: its name in upper case (ENGINE, CHARSET,
// COLLATE, COMMENT, AUTO_INCREMENT, ROW_FORMAT, ..) and its value as text or number.
type TableOption struct {
	Name   string
	Value  string
	Number uint64
}

// AlterTable is ALTER TABLE.
type AlterTable struct {
	source
	Table     TableName
	Specs     []AlterSpec
	Algorithm string // DEFAULT, INSTANT, INPLACE, COPY or empty
	Lock      string // DEFAULT, NONE, SHARED, EXCLUSIVE or empty
	// Validation is WITH or WITHOUT, of VALIDATION, or empty.
	Validation string
}

// AlterSpec is one change of ALTER TABLE.
type AlterSpec interface {
	Node
	alterSpec()
}

// Position says where a column goes: to the end, to the front, after another.
type Position struct {
	First bool
	After string
}

type (
	// AddColumns is ADD COLUMN; Position counts for a single column only.
	AddColumns struct {
		Columns     []ColumnDef
		Position    Position
		IfNotExists bool
		// Indexes, ForeignKeys and Checks may stand in ADD (..).
		Indexes     []IndexDef
		ForeignKeys []ForeignKey
		Checks      []Check
	}
	// DropColumn is DROP COLUMN.
	DropColumn struct {
		Name     string
		IfExists bool
	}
	// ChangeColumn is MODIFY and CHANGE. MODIFY has Old equal to Column.Name.
	ChangeColumn struct {
		Old      string
		Column   ColumnDef
		Position Position
		IfExists bool
	}
	// RenameColumn is RENAME COLUMN.
	RenameColumn struct {
		Old, New string
	}
	// SetDefault is ALTER COLUMN SET DEFAULT, or DROP DEFAULT if Default is nil.
	SetDefault struct {
		Column      string
		Default     Expr
		DefaultExpr bool // SET DEFAULT (expression)
	}
	// SetColumnVisible is ALTER COLUMN SET VISIBLE.
	SetColumnVisible struct {
		Column    string
		Invisible bool
	}
	// AddIndex is ADD INDEX, UNIQUE, PRIMARY KEY ..
	AddIndex struct {
		Index IndexDef
	}
	// AddForeignKey is ADD FOREIGN KEY.
	AddForeignKey struct {
		ForeignKey ForeignKey
	}
	// AddCheck is ADD CHECK.
	AddCheck struct {
		Check Check
	}
	// DropIndex is DROP INDEX; "PRIMARY" is DROP PRIMARY KEY.
	DropIndexSpec struct {
		Name     string
		IfExists bool
	}
	// DropForeignKey is DROP FOREIGN KEY.
	DropForeignKey struct {
		Name     string
		IfExists bool
	}
	// DropConstraint is DROP CHECK, or DROP CONSTRAINT (Any) of whatever kind.
	DropConstraint struct {
		Name string
		Any  bool
	}
	// SetCheckEnforced is ALTER CHECK.
	SetCheckEnforced struct {
		Name        string
		NotEnforced bool
	}
	// SetIndexVisible is ALTER INDEX.
	SetIndexVisible struct {
		Name      string
		Invisible bool
	}
	// RenameIndex is RENAME INDEX.
	RenameIndex struct {
		Old, New string
	}
	// RenameTo is RENAME TO.
	RenameTo struct {
		Table TableName
	}
	// SetOptions sets table options.
	SetOptions struct {
		Options []TableOption
	}
	// ConvertCharset is CONVERT TO CHARACTER SET.
	ConvertCharset struct {
		Charset, Collate string
	}
	// SetKeys is DISABLE KEYS and ENABLE KEYS, which mean nothing.
	SetKeys struct {
		Disable bool
	}
	// OrderRows is ORDER BY: the order of rows, which means nothing.
	OrderRows struct {
		By []OrderItem
	}
	// Force is FORCE: a rebuild.
	Force struct{}
)

// DropTable is DROP TABLE.
type DropTable struct {
	source
	Tables    []TableName
	IfExists  bool
	Temporary bool
}

// Truncate is TRUNCATE TABLE.
type Truncate struct {
	source
	Table TableName
}

// RenameTables is RENAME TABLE.
type RenameTables struct {
	source
	Renames []Rename
}

// Rename is old TO new.
type Rename struct {
	Old, New TableName
}

// CreateIndex is CREATE INDEX.
type CreateIndex struct {
	source
	Table     TableName
	Index     IndexDef
	Algorithm string
	Lock      string
}

// DropIndex is DROP INDEX.
type DropIndex struct {
	source
	Table     TableName
	Name      string
	IfExists  bool
	Algorithm string
	Lock      string
}

// CreateView is CREATE VIEW and, with Alter, ALTER VIEW.
type CreateView struct {
	source
	View        TableName
	OrReplace   bool
	Alter       bool
	Algorithm   string // UNDEFINED, MERGE, TEMPTABLE
	Definer     *User  // nil: the current user
	Invoker     bool   // SQL SECURITY INVOKER
	Columns     []string
	Query       Query
	CheckOption string // CASCADED, LOCAL or empty
}

// DropView is DROP VIEW.
type DropView struct {
	source
	Views    []TableName
	IfExists bool
}

func (*AddColumns) node()       {}
func (*DropColumn) node()       {}
func (*ChangeColumn) node()     {}
func (*RenameColumn) node()     {}
func (*SetDefault) node()       {}
func (*SetColumnVisible) node() {}
func (*AddIndex) node()         {}
func (*AddForeignKey) node()    {}
func (*AddCheck) node()         {}
func (*DropIndexSpec) node()    {}
func (*DropForeignKey) node()   {}
func (*DropConstraint) node()   {}
func (*SetCheckEnforced) node() {}
func (*SetIndexVisible) node()  {}
func (*RenameIndex) node()      {}
func (*RenameTo) node()         {}
func (*SetOptions) node()       {}
func (*ConvertCharset) node()   {}
func (*SetKeys) node()          {}
func (*OrderRows) node()        {}
func (*Force) node()            {}

func (*AddColumns) alterSpec()       {}
func (*DropColumn) alterSpec()       {}
func (*ChangeColumn) alterSpec()     {}
func (*RenameColumn) alterSpec()     {}
func (*SetDefault) alterSpec()       {}
func (*SetColumnVisible) alterSpec() {}
func (*AddIndex) alterSpec()         {}
func (*AddForeignKey) alterSpec()    {}
func (*AddCheck) alterSpec()         {}
func (*DropIndexSpec) alterSpec()    {}
func (*DropForeignKey) alterSpec()   {}
func (*DropConstraint) alterSpec()   {}
func (*SetCheckEnforced) alterSpec() {}
func (*SetIndexVisible) alterSpec()  {}
func (*RenameIndex) alterSpec()      {}
func (*RenameTo) alterSpec()         {}
func (*SetOptions) alterSpec()       {}
func (*ConvertCharset) alterSpec()   {}
func (*SetKeys) alterSpec()          {}
func (*OrderRows) alterSpec()        {}
func (*Force) alterSpec()            {}
