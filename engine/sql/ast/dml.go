package ast

// Insert is INSERT and REPLACE. INSERT .. SET has the columns and one row; a column
// list that was not given is nil, an empty one has length 0.
type Insert struct {
	source
	Replace     bool
	Ignore      bool
	LowPriority bool // means nothing, as for InnoDB
	Delayed     bool // likewise
	Hints       []Hint
	Table       TableName
	Partitions  []string
	Columns     []string
	Rows        [][]Expr // nil with Query; an item may be a *Default
	Query       Query
	Creates     bool // the rows are those of CREATE TABLE .. SELECT
	Temporary   bool // with Creates: of CREATE TEMPORARY TABLE
	// RowAlias and ColumnAliases are VALUES (..) AS new(a, b).
	RowAlias      string
	ColumnAliases []string
	OnDuplicate   []Assignment
}

// Assignment is column = value; the value may be a *Default.
type Assignment struct {
	Column *ColumnRef
	Value  Expr
}

// Update is UPDATE of one or, if Table is a *Join, several tables.
type Update struct {
	source
	With        *With
	Ignore      bool
	LowPriority bool
	Hints       []Hint
	Table       TableExpr
	Set         []Assignment
	Where       Expr
	OrderBy     []OrderItem
	Limit       *Limit
}

// Delete is DELETE. Targets are the tables to delete from of the multi-table forms,
// by the names or aliases they have in From; nil for the simple form.
type Delete struct {
	source
	With        *With
	Ignore      bool
	LowPriority bool
	Quick       bool
	Hints       []Hint
	Targets     []TableName
	From        TableExpr
	Where       Expr
	OrderBy     []OrderItem
	Limit       *Limit
}

// LoadData is LOAD DATA [LOCAL] INFILE.
type LoadData struct {
	source
	Local   bool
	File    string
	Replace bool
	Ignore  bool
	Table   TableName
	Charset string
	Fields  LoadFields
	Lines   LoadLines
	Skip    uint64 // IGNORE n LINES
	// Columns are *ColumnRef and user *Variable; nil means all columns.
	Columns []Expr
	Set     []Assignment
}

// LoadFields is the FIELDS clause, defaults filled in.
type LoadFields struct {
	Terminated         string
	Enclosed           string
	OptionallyEnclosed bool
	Escaped            string
}

// LoadLines is the LINES clause, defaults filled in.
type LoadLines struct {
	Starting   string
	Terminated string
}

// Do is DO expr, ..
type Do struct {
	source
	Exprs []Expr
}

// Call is CALL procedure(args). There are no stored programs.
type Call struct {
	source
	Schema, Name string
	Args         []Expr
}
