package session

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// shapesText has the columns of the tables and views that monitoring tools read, as information_schema.COLUMNS of MySQL
// shows them: a line with the name of a table, then one for each column with name, type and attributes.
//
//go:embed shapes.txt
var shapesText string

// shownColumn is what COLUMNS shows of a column that the definition of a made-up table does not hold: it has neither keys
// nor defaults.
type shownColumn struct {
	key, extra string
	value      any // COLUMN_DEFAULT
}

// sysView is a view of the schema sys.
type sysView struct {
	def     *record.Table
	query   string
	columns []string
}

var (
	shapeOf  map[*record.Table][]shownColumn
	sysViews map[string]*sysView
)

// shapedRows gives the rows of the tables of shapesText, by schema and name. What is not in it is empty, for want of what
// it would tell of. It is set by init, since rows refer to tables.
var shapedRows map[string]func(q *virtualRows) error

func init() { shapedRows = shapedTables() }

// loadShapes adds the tables of shapesText. REQUIRES: virtualsOnce.
func loadShapes() {
	shapeOf, sysViews, guarded = map[*record.Table][]shownColumn{}, map[string]*sysView{}, map[string]bool{}
	var name string
	var columns []string
	for line := range strings.Lines(shapesText) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.Contains(line, "\t"):
			columns = append(columns, line)
		default:
			addShape(name, columns)
			name, columns = line, nil
		}
	}
	addShape(name, columns)
}

func addShape(full string, lines []string) {
	if len(lines) == 0 {
		return
	}
	schema, name, _ := strings.Cut(full, ".")
	shown := make([]shownColumn, len(lines))
	columns := make([]string, len(lines))
	for i, line := range lines {
		columns[i] = shapedColumn(line, &shown[i])
	}
	statements, err := ast.Parse("CREATE TABLE t ("+strings.Join(columns, ", ")+")", 0)
	var def *record.Table
	if err == nil {
		env := &catalog.Env{Collation: types.CollationUTF8MB40900AI}
		def, err = catalog.Define(env, schema, statements[0].(*ast.CreateTable), nil)
	}
	if err != nil {
		panic(fmt.Sprintf("session: the definition of %s is wrong: %v", full, err)) // a constant of this package
	}
	def.Name = name
	shapeOf[def] = shown
	if schema == perfSchema && !perfForAll[name] {
		guarded[name] = true
	}
	query, isView := sysQuery(name)
	if schema != sysSchema || !isView {
		addVirtual(def, shapedReader(full, schema, name))
		return
	}
	view := &sysView{def: def, query: query}
	for i := range def.Columns {
		view.columns = append(view.columns, def.Columns[i].Name)
	}
	catalog.SetView(def, catalog.View{Query: query, Schema: sysSchema, Definer: ast.User{Name: "mysql.sys", Host: "localhost"}, Invoker: true,
		Client: "utf8mb4", Connection: "utf8mb4_0900_ai_ci"})
	sysViews[name] = view
	virtualNames[sysSchema] = append(virtualNames[sysSchema], name)
}

// shapedColumn is a column as in CREATE TABLE; what that does not say goes to shown.
func shapedColumn(line string, shown *shownColumn) string {
	parts := strings.Split(line, "\t")
	text := "`" + parts[0] + "` " + parts[1]
	null := ""
	if strings.HasPrefix(parts[1], "timestamp") {
		null = " NULL"
	}
	comment := ""
	for _, p := range parts[2:] {
		what, value, _ := strings.Cut(p, "=")
		switch what {
		case "collate":
			text += " COLLATE " + value
		case "not-null":
			null = " NOT NULL"
		case "key":
			shown.key = value
		case "extra":
			shown.extra = value
		case "default":
			shown.value = value
		case "comment":
			comment = " COMMENT '" + strings.ReplaceAll(value, "'", "''") + "'"
		}
	}
	return text + null + comment
}

// shapedReader checks who may read a table before it gives its rows. Errors: 1142, 1227.
func shapedReader(full, schema, name string) func(q *virtualRows) error {
	rows := shapedRows[full]
	return func(q *virtualRows) error {
		var err error
		switch {
		case schema == infoSchema:
			err = q.s.privileges().Needs(priv.Process)
		case guarded[name] && schema == perfSchema:
			err = mayReadPerf(q.s.privileges(), name, q.s.info.Host)
		}
		if err != nil || rows == nil {
			return err
		}
		return rows(q)
	}
}

// perfForAll are the tables of performance_schema that every account reads, those of other sessions being left out.
var perfForAll = map[string]bool{"processlist": true, "session_account_connect_attrs": true, "variables_info": true, "persisted_variables": true, "threads": true}

// guarded are the tables of performance_schema that ask for SELECT on them, but for those of older releases, which ask by
// mayWatch.
var guarded map[string]bool

// mayReadPerf checks SELECT on a table of performance_schema. Error: 1142.
func mayReadPerf(a *priv.Active, table, host string) error {
	if a.TableMask(perfSchema, table)&priv.Select != 0 {
		return nil
	}
	return sqlerr.New(sqlerr.TableAccessDeniedError, "SELECT", a.ID.Name, host, table)
}

// perfGrants are the privileges that can be granted on performance_schema.
const perfGrants = priv.Select | priv.Insert | priv.Update | priv.Delete | priv.Drop | priv.LockTables

// showCreateSys is SHOW CREATE VIEW and SHOW CREATE TABLE of a view of sys. Errors: 1142, 1146.
func (s *Session) showCreateSys(st *ast.Show) error {
	loadVirtuals()
	view := sysViews[st.Table.Name]
	a := s.privileges()
	if err := a.AnyTable(sysSchema, st.Table.Name, priv.Select, "SHOW VIEW"); err != nil {
		return err
	}
	if view == nil {
		return sqlerr.New(sqlerr.NoSuchTable, sysSchema, st.Table.Name)
	}
	if err := a.Table(sysSchema, st.Table.Name, priv.ShowView, "SHOW VIEW"); err != nil {
		return err
	}
	v, _ := catalog.ViewOf(view.def)
	text, _ := catalog.ShowCreateView(view.def, s.schema != sysSchema)
	return s.give([]column{{"View", shortText}, {"Create View", longText}, {"character_set_client", shortText}, {"collation_connection", shortText}},
		[]any{view.def.Name, text, v.Client, v.Connection})
}
