package session

import (
	"context"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// Most of SHOW is a query on the schemas that are made up: the list of columns gives the
// names that clients know, LIKE and WHERE are conditions on the result. What takes a name
// and no condition (SHOW CREATE TABLE, SHOW GRANTS) gives its rows itself.

// runShow runs SHOW, DESCRIBE and table maintenance.
func (s *Session) runShow(st ast.Statement) (Outcome, error) {
	ctx := s.out.ctx
	switch st := st.(type) {
	case *ast.Maintain:
		return s.maintain(ctx, st)
	case *ast.Flush:
		return Outcome{}, s.flush(ctx, st)
	case *ast.Show:
		return s.show(ctx, st)
	}
	return Outcome{}, unknownStatement(st)
}

func (s *Session) show(ctx context.Context, st *ast.Show) (Outcome, error) {
	switch st.Kind {
	case ast.ShowTables, ast.ShowTableStatus, ast.ShowColumns, ast.ShowIndexes:
		return s.showTables(ctx, st)
	case ast.ShowCreateSchema, ast.ShowCreateTable, ast.ShowCreateView, ast.ShowCreateUser, ast.ShowCreateProgram:
		return Outcome{}, s.showCreate(st)
	case ast.ShowWarnings, ast.ShowErrors:
		return Outcome{}, s.showConditions(st)
	case ast.ShowGrants:
		return Outcome{}, s.showGrants(st)
	case ast.ShowPrivileges:
		return Outcome{}, s.showPrivileges()
	case ast.ShowEngine:
		return Outcome{}, s.showEngine(st)
	case ast.ShowBinaryLogs, ast.ShowBinaryLogStatus:
		return Outcome{}, s.showBinaryLogs(st)
	case ast.ShowBinaryLogEvents, ast.ShowRelayLogEvents:
		return Outcome{}, notSupported("SHOW BINLOG EVENTS")
	case ast.ShowReplicas, ast.ShowReplicaStatus, ast.ShowProfiles, ast.ShowProfile, ast.ShowOpenTables:
		return Outcome{}, s.showNothing(st)
	}
	q, ok := shown[st.Kind]
	if !ok {
		return Outcome{}, unknownStatement(st)
	}
	text := q.text
	switch {
	case st.Kind == ast.ShowVariables && st.Global:
		text = strings.Replace(text, "session_variables", "global_variables", 1)
	case st.Kind == ast.ShowStatus && st.Global:
		text = strings.Replace(text, "session_status", "global_status", 1)
	case st.Kind == ast.ShowProcessList && st.Full:
		text = strings.Replace(text, "LEFT(INFO, 100)", "INFO", 1)
	}
	if pattern := patternText(st); st.Kind == ast.ShowSchemas && pattern != "" {
		text = strings.Replace(text, "`Database`", catalog.QuoteName("Database"+pattern), 1)
		q.like += pattern
	}
	if (st.Kind == ast.ShowTriggers || st.Kind == ast.ShowEvents) && st.Schema == "" && s.schema == "" {
		return Outcome{}, sqlerr.New(sqlerr.NoDBError)
	}
	return s.showQuery(ctx, text, q.like, st)
}

// patternText is what LIKE adds to the name of a column.
func patternText(st *ast.Show) string {
	if l, ok := st.Like.(*ast.Literal); ok && l.Kind == ast.LiteralString {
		return " (" + string(l.Value.Bytes()) + ")"
	}
	return ""
}

// shownQuery is a SHOW that is a query: its text, and the column that LIKE is about.
type shownQuery struct{ text, like string }

var shown = map[ast.ShowKind]shownQuery{
	ast.ShowSchemas:     {"SELECT SCHEMA_NAME AS `Database` FROM information_schema.SCHEMATA ORDER BY 1", "Database"},
	ast.ShowVariables:   {"SELECT VARIABLE_NAME AS Variable_name, VARIABLE_VALUE AS Value FROM performance_schema.session_variables", "Variable_name"},
	ast.ShowStatus:      {"SELECT VARIABLE_NAME AS Variable_name, VARIABLE_VALUE AS Value FROM performance_schema.session_status", "Variable_name"},
	ast.ShowProcessList: {"SELECT ID AS Id, USER AS User, HOST AS Host, DB AS db, COMMAND AS Command, TIME AS Time, STATE AS State, LEFT(INFO, 100) AS Info FROM information_schema.PROCESSLIST", ""},
	ast.ShowEngines:     {"SELECT ENGINE AS Engine, SUPPORT AS Support, COMMENT AS Comment, TRANSACTIONS AS Transactions, XA, SAVEPOINTS AS Savepoints FROM information_schema.ENGINES", ""},
	ast.ShowPlugins:     {"SELECT PLUGIN_NAME AS Name, PLUGIN_STATUS AS Status, PLUGIN_TYPE AS Type, PLUGIN_LIBRARY AS Library, PLUGIN_LICENSE AS License FROM information_schema.PLUGINS", ""},
	ast.ShowCharset: {"SELECT CHARACTER_SET_NAME AS Charset, DESCRIPTION AS Description, DEFAULT_COLLATE_NAME AS `Default collation`, MAXLEN AS Maxlen FROM information_schema.CHARACTER_SETS",
		"Charset"},
	ast.ShowCollation: {"SELECT COLLATION_NAME AS Collation, CHARACTER_SET_NAME AS Charset, ID AS Id, IS_DEFAULT AS `Default`, IS_COMPILED AS Compiled, SORTLEN AS Sortlen, " +
		"PAD_ATTRIBUTE AS Pad_attribute FROM information_schema.COLLATIONS", "Collation"},
	ast.ShowTriggers: {"SELECT TRIGGER_NAME AS `Trigger`, EVENT_MANIPULATION AS Event, EVENT_OBJECT_TABLE AS `Table`, ACTION_STATEMENT AS Statement, ACTION_TIMING AS Timing, CREATED AS Created, " +
		"SQL_MODE AS sql_mode, DEFINER AS Definer, CHARACTER_SET_CLIENT AS character_set_client, COLLATION_CONNECTION AS collation_connection, DATABASE_COLLATION AS `Database Collation` " +
		"FROM information_schema.TRIGGERS", "Table"},
	ast.ShowEvents: {"SELECT EVENT_SCHEMA AS Db, EVENT_NAME AS Name, DEFINER AS Definer, TIME_ZONE AS `Time zone`, EVENT_TYPE AS Type, EXECUTE_AT AS `Execute at`, INTERVAL_VALUE AS `Interval value`, " +
		"INTERVAL_FIELD AS `Interval field`, STARTS AS Starts, ENDS AS Ends, STATUS AS Status, ORIGINATOR AS Originator, CHARACTER_SET_CLIENT AS character_set_client, " +
		"COLLATION_CONNECTION AS collation_connection, DATABASE_COLLATION AS `Database Collation` FROM information_schema.EVENTS", "Name"},
	ast.ShowProcedures: {routineQuery, "Name"},
	ast.ShowFunctions:  {routineQuery, "Name"},
}

const routineQuery = "SELECT ROUTINE_SCHEMA AS Db, ROUTINE_NAME AS Name, ROUTINE_TYPE AS Type, DEFINER AS Definer, LAST_ALTERED AS Modified, CREATED AS Created, SECURITY_TYPE AS Security_type, " +
	"ROUTINE_COMMENT AS Comment, CHARACTER_SET_CLIENT AS character_set_client, COLLATION_CONNECTION AS collation_connection, DATABASE_COLLATION AS `Database Collation` " +
	"FROM information_schema.ROUTINES"

// showQuery runs a query of which LIKE and WHERE select rows.
func (s *Session) showQuery(ctx context.Context, text, like string, st *ast.Show) (Outcome, error) {
	statements, err := ast.Parse(text, 0)
	if err != nil {
		return Outcome{}, err
	}
	inner := statements[0].(*ast.Select)
	var where ast.Expr
	switch {
	case st.Like != nil && like != "":
		where = &ast.Like{Operand: &ast.ColumnRef{Name: like}, Pattern: st.Like}
	case st.Where != nil:
		where = st.Where
	}
	shown := *inner
	shown.Having = where // which knows the names of the result
	return s.runPlanned(ctx, &shown, nil)
}

// showTables is SHOW TABLES, TABLE STATUS, COLUMNS and INDEX.
func (s *Session) showTables(ctx context.Context, st *ast.Show) (Outcome, error) {
	schema := st.Schema
	if st.Table.Schema != "" {
		schema = st.Table.Schema
	}
	if schema == "" {
		schema = s.schema
	}
	if schema == "" {
		return Outcome{}, sqlerr.New(sqlerr.NoDBError)
	}
	if err := s.pointDefinitions(); err != nil {
		return Outcome{}, err
	}
	if err := s.connect(); err != nil {
		return Outcome{}, err
	}
	// What may not be seen is not told from what is not there.
	if st.Kind != ast.ShowTables && st.Kind != ast.ShowTableStatus {
		s.work.described = s.temporaryTable(schema, st.Table.Name)
	}
	if err := s.mayShow(schema, st); err != nil {
		return Outcome{}, err
	}
	schema, _, err := s.findSchema(schema)
	if err != nil {
		return Outcome{}, err
	}
	in := " WHERE TABLE_SCHEMA = " + catalog.EscapeString(schema)
	switch st.Kind {
	case ast.ShowTables:
		name := "Tables_in_" + schema + patternText(st)
		text := "SELECT TABLE_NAME AS " + catalog.QuoteName(name)
		if st.Full {
			text += ", TABLE_TYPE AS Table_type"
		}
		out, err := s.showQuery(ctx, text+" FROM information_schema.TABLES"+in+" ORDER BY 1", name, st)
		return out, err
	case ast.ShowTableStatus:
		return s.showQuery(ctx, "SELECT TABLE_NAME AS Name, ENGINE AS Engine, VERSION AS Version, ROW_FORMAT AS Row_format, TABLE_ROWS AS `Rows`, AVG_ROW_LENGTH AS Avg_row_length, "+
			"DATA_LENGTH AS Data_length, MAX_DATA_LENGTH AS Max_data_length, INDEX_LENGTH AS Index_length, DATA_FREE AS Data_free, AUTO_INCREMENT AS Auto_increment, "+
			"CREATE_TIME AS Create_time, UPDATE_TIME AS Update_time, CHECK_TIME AS Check_time, TABLE_COLLATION AS Collation, CHECKSUM AS Checksum, CREATE_OPTIONS AS Create_options, "+
			"TABLE_COMMENT AS Comment FROM information_schema.TABLES"+in+" ORDER BY 1", "Name", st)
	}
	table := st.Table.Name
	if s.work.described == nil {
		if table, err = s.findTable(schema, table, st.Kind == ast.ShowColumns); err != nil {
			return Outcome{}, err
		}
	}
	in += " AND TABLE_NAME = " + catalog.EscapeString(table)
	if st.Kind == ast.ShowIndexes {
		return s.showQuery(ctx, "SELECT TABLE_NAME AS `Table`, NON_UNIQUE AS Non_unique, INDEX_NAME AS Key_name, SEQ_IN_INDEX AS Seq_in_index, COLUMN_NAME AS Column_name, COLLATION AS Collation, "+
			"CARDINALITY AS Cardinality, SUB_PART AS Sub_part, PACKED AS Packed, NULLABLE AS `Null`, INDEX_TYPE AS Index_type, COMMENT AS Comment, INDEX_COMMENT AS Index_comment, "+
			"IS_VISIBLE AS Visible, EXPRESSION AS Expression FROM information_schema.STATISTICS"+in, "", st)
	}
	columns := "COLUMN_NAME AS Field, COLUMN_TYPE AS Type, IS_NULLABLE AS `Null`, COLUMN_KEY AS `Key`, COLUMN_DEFAULT AS `Default`, EXTRA AS Extra"
	if st.Full {
		columns = "COLUMN_NAME AS Field, COLUMN_TYPE AS Type, COLLATION_NAME AS Collation, IS_NULLABLE AS `Null`, COLUMN_KEY AS `Key`, COLUMN_DEFAULT AS `Default`, EXTRA AS Extra, " +
			"PRIVILEGES AS Privileges, COLUMN_COMMENT AS Comment"
	}
	if st.Column != "" { // DESCRIBE table column
		st = &ast.Show{Kind: st.Kind, Like: stringLiteral(st.Column)}
	}
	return s.showQuery(ctx, "SELECT "+columns+" FROM information_schema.COLUMNS"+in+" ORDER BY ORDINAL_POSITION", "Field", st)
}

func stringLiteral(text string) *ast.Literal {
	return &ast.Literal{Kind: ast.LiteralString, Value: types.NewString(text),
		Type: &types.Type{Kind: types.KindVarChar, Length: uint32(len([]rune(text))), NotNull: true}}
}

// mayShow is asked by SHOW TABLES, TABLE STATUS, COLUMNS and INDEX. Errors: 1044, 1142.
func (s *Session) mayShow(schema string, st *ast.Show) error {
	switch {
	case st.Kind == ast.ShowTables || st.Kind == ast.ShowTableStatus:
		return s.privileges().MayUse(schema)
	case s.work.described != nil:
		return nil
	}
	return s.privileges().MayDescribe(schema, st.Table.Name)
}

// findTable checks that a table is there and returns its name as information_schema has it. Errors: 1146; of a view whose columns are
// wanted 1356.
func (s *Session) findTable(schema, name string, columns bool) (string, error) {
	if v := madeOf(schema, name); v != nil {
		return v.Def.Name, nil
	}
	if known, ok := virtualSchema(schema); ok {
		if known != sysSchema {
			return "", sqlerr.New(sqlerr.UnknownTable, strings.ToUpper(name), known)
		}
		if sysViews[name] == nil {
			return "", sqlerr.New(sqlerr.NoSuchTable, known, name)
		}
		return name, nil
	}
	h, err := s.eng.Catalog.OpenTable(nil, schema, name)
	if err != nil {
		return "", missingTable(err, schema, name)
	}
	defer h.Release()
	def := h.Table().Schema.Table
	if v, ok := catalog.ViewOf(def); ok && columns {
		if broken, err := s.brokenView(def, v); broken != nil {
			return "", broken
		} else if err != nil {
			return "", err
		}
	}
	return name, nil
}

// column is a column of a result that is not a query's.
type column struct {
	name string
	typ  *types.Type
}

var (
	shortText = &types.Type{Kind: types.KindVarChar, Length: 1024, Collation: types.CollationUTF8MB40900AI}
	longText  = &types.Type{Kind: types.KindLongText, Collation: types.CollationUTF8MB40900AI}
	bigNumber = &types.Type{Kind: types.KindBigInt, Unsigned: true}
)

func textColumns(names ...string) []column {
	var list []column
	for _, n := range names {
		list = append(list, column{n, shortText})
	}
	return list
}

// give sends rows of texts, numbers and nil.
func (s *Session) give(columns []column, rows ...[]any) error {
	var result []ResultColumn
	var list []*types.Type
	for _, c := range columns {
		result, list = append(result, ResultColumn{Name: c.name, Type: c.typ}), append(list, c.typ)
	}
	if err := s.out.columns(result); err != nil {
		return err
	}
	b := types.NewBatch(list)
	for _, r := range rows {
		values := make([]types.Value, len(list))
		for i, x := range r {
			v, err := virtualValue(x, list[i])
			if err != nil {
				return err
			}
			values[i] = v
		}
		b.AppendRow(values)
		if b.Full() {
			if err := s.out.batch(b); err != nil {
				return err
			}
			b.Reset()
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return s.out.batch(b)
}
