package console

import (
	"encoding/hex"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// browseRequest is what the table browser asks for.
type browseRequest struct {
	Schema string `json:"schema"`
	Table  string `json:"table"`
	Filter string `json:"filter"` // a part of tables' names
	Limit  int    `json:"limit"`  // rows of a page
	// After is the key of the row after which the page begins, as an earlier answer had it; with
	// Offset it begins after so many rows: for tables without a usable key.
	After  []string `json:"after"`
	Offset int      `json:"offset"`
}

// Bounds of the browser.
const (
	tablesMost  = 2000
	columnsMost = 4096
	pageUsual   = 50
	pageMost    = 500
	offsetMost  = 1_000_000
)

// browse reads a request and answers with what is made of it.
func (c *Console) browse(w http.ResponseWriter, r *http.Request, s *signIn, serve func(b *browser) (any, error)) error {
	b := &browser{c: c, r: r, s: s}
	if err := read(w, r, smallRequest, &b.ask); err != nil {
		return err
	}
	if len(b.ask.Schema) > namesMost || len(b.ask.Table) > namesMost || len(b.ask.Filter) > namesMost {
		return badRequest("a name is too long")
	}
	out, err := serve(b)
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, out)
	return nil
}

// browser runs the statements of a request of the table browser, as the user, on this node as it
// is, in sessions that cannot write.
type browser struct {
	c   *Console
	r   *http.Request
	s   *signIn
	ask browseRequest
}

// query runs a statement and returns its result. key are columns whose last values are kept.
func (b *browser) query(sql string, most int, key []string) (*results, error) {
	out, done, err := b.c.execute(b.r.Context(), b.s, &runRequest{Text: sql, Rows: most}, runUsual, key)
	if err != nil {
		return nil, err
	}
	done()
	if out.err != nil {
		return nil, out.err
	}
	for _, one := range out.all {
		if one.Columns != nil {
			one.Rows = rowsJSON(one.rows)
		}
	}
	return out, nil
}

// list is query for the answer's sake.
func (b *browser) list(sql string, most int) (*result, error) {
	out, err := b.query(sql, most, nil)
	if err != nil || len(out.all) == 0 {
		return &result{}, err
	}
	return out.all[0], nil
}

// serveSchemas answers POST browse/schemas.
func (c *Console) serveSchemas(w http.ResponseWriter, r *http.Request, s *signIn) error {
	return c.browse(w, r, s, func(b *browser) (any, error) {
		return b.list("SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA ORDER BY SCHEMA_NAME", tablesMost)
	})
}

// serveTables answers POST browse/tables: those of a schema.
func (c *Console) serveTables(w http.ResponseWriter, r *http.Request, s *signIn) error {
	return c.browse(w, r, s, func(b *browser) (any, error) {
		where := "TABLE_SCHEMA = " + quote(b.ask.Schema)
		if b.ask.Filter != "" {
			where += " AND LOCATE(" + quote(b.ask.Filter) + ", TABLE_NAME) > 0"
		}
		return b.list("SELECT TABLE_NAME, TABLE_TYPE, TABLE_ROWS, DATA_LENGTH, INDEX_LENGTH, TABLE_COMMENT FROM information_schema.TABLES WHERE "+
			where+" ORDER BY TABLE_NAME", tablesMost)
	})
}

func (b *browser) ofTable() string {
	return " WHERE TABLE_SCHEMA = " + quote(b.ask.Schema) + " AND TABLE_NAME = " + quote(b.ask.Table)
}

// serveTable answers POST browse/table: columns, indexes, the definition.
func (c *Console) serveTable(w http.ResponseWriter, r *http.Request, s *signIn) error {
	return c.browse(w, r, s, func(b *browser) (any, error) {
		columns, err := b.list("SELECT COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT, EXTRA, COLUMN_KEY, COLLATION_NAME, COLUMN_COMMENT "+
			"FROM information_schema.COLUMNS"+b.ofTable()+" ORDER BY ORDINAL_POSITION", columnsMost)
		if err != nil {
			return nil, err
		}
		if columns.Count == 0 {
			return nil, explain(sqlerr.New(sqlerr.NoSuchTable, b.ask.Schema, b.ask.Table))
		}
		indexes, err := b.list("SELECT INDEX_NAME, NON_UNIQUE, SEQ_IN_INDEX, COLUMN_NAME, EXPRESSION, SUB_PART, COLLATION, INDEX_TYPE, IS_VISIBLE, CARDINALITY "+
			"FROM information_schema.STATISTICS"+b.ofTable()+" ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX", columnsMost)
		if err != nil {
			return nil, err
		}
		// Who may see the columns need not see the definition.
		create, err := b.list("SHOW CREATE TABLE "+b.name(), 1)
		if err != nil {
			create = nil
		}
		return map[string]*result{"columns": columns, "indexes": indexes, "create": create}, nil
	})
}

func (b *browser) name() string {
	return catalog.QuoteName(b.ask.Schema) + "." + catalog.QuoteName(b.ask.Table)
}

// keyPart is a column of the key by which a table is read in pages.
type keyPart struct{ name, kind string }

// serveRows answers POST browse/rows: a page of a table's rows in the order of its primary key.
func (c *Console) serveRows(w http.ResponseWriter, r *http.Request, s *signIn) error {
	return c.browse(w, r, s, func(b *browser) (any, error) {
		limit := b.ask.Limit
		if limit == 0 {
			limit = pageUsual
		}
		if limit < 0 || limit > pageMost || b.ask.Offset < 0 || b.ask.Offset > offsetMost {
			return nil, badRequest("a page has 1 to 500 rows and begins after at most 1000000")
		}
		key, err := b.key()
		if err != nil {
			return nil, err
		}
		sql := "SELECT * FROM " + b.name()
		if len(b.ask.After) > 0 {
			where, err := after(key, b.ask.After)
			if err != nil {
				return nil, err
			}
			sql += " WHERE " + where
		}
		var columns []string
		for i, k := range key {
			sql += map[bool]string{true: " ORDER BY ", false: ", "}[i == 0] + catalog.QuoteName(k.name)
			columns = append(columns, k.name)
		}
		sql += " LIMIT " + strconv.Itoa(limit+1)
		if b.ask.Offset > 0 {
			sql += " OFFSET " + strconv.Itoa(b.ask.Offset)
		}
		out, err := b.query(sql, limit, columns)
		if err != nil {
			return nil, err
		}
		page := struct {
			*result
			Key  []string `json:"key"`
			Next []string `json:"next,omitempty"`
		}{result: out.all[0], Key: columns}
		if page.More {
			page.Next = out.last
		}
		return page, nil
	})
}

// key finds the primary key's columns; none, if there is no primary key, or one whose values
// cannot be compared as they are shown.
func (b *browser) key() (parts []keyPart, err error) {
	out, err := b.query("SELECT s.COLUMN_NAME, c.DATA_TYPE, s.SUB_PART, s.COLLATION FROM information_schema.STATISTICS s "+
		"JOIN information_schema.COLUMNS c ON c.TABLE_SCHEMA = s.TABLE_SCHEMA AND c.TABLE_NAME = s.TABLE_NAME AND c.COLUMN_NAME = s.COLUMN_NAME "+
		"WHERE s.INDEX_NAME = 'PRIMARY' AND s.TABLE_SCHEMA = "+quote(b.ask.Schema)+" AND s.TABLE_NAME = "+quote(b.ask.Table)+" ORDER BY s.SEQ_IN_INDEX", 64, nil)
	if err != nil {
		return nil, err
	}
	rows, err := out.texts()
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		k := keyPart{name: row[0], kind: strings.ToLower(row[1])}
		if keyKinds[k.kind] == nil || row[2] != "" || row[3] != "A" {
			return nil, nil
		}
		parts = append(parts, k)
	}
	return parts, nil
}

// keyKinds make literals of a key's values, by their types; "" is for a value that is none. ENUM
// and SET are ordered by other things than their texts, FLOAT is shown rounded.
var keyKinds = func() map[string]func(string) string {
	number := regexp.MustCompile(`^-?[0-9]{1,66}(\.[0-9]{1,31})?$`)
	asNumber := func(v string) string {
		if !number.MatchString(v) {
			return ""
		}
		return v
	}
	asBytes := func(v string) string {
		if _, err := hex.DecodeString(v); err != nil {
			return ""
		}
		return "X'" + v + "'"
	}
	all := map[string]func(string) string{}
	for kinds, of := range map[string]func(string) string{"tinyint smallint mediumint int bigint decimal year": asNumber,
		"char varchar date time datetime timestamp": quote, "binary varbinary": asBytes} {
		for _, kind := range strings.Fields(kinds) {
			all[kind] = of
		}
	}
	return all
}()

// after is the condition of rows whose key comes after values. The first column has a condition
// of its own, by which an index can be used.
func after(key []keyPart, values []string) (string, error) {
	if len(values) != len(key) {
		return "", badRequest("the page does not begin after a key of the table: begin anew")
	}
	var alternatives []string
	equal := ""
	first := ""
	for i, k := range key {
		literal := keyKinds[k.kind](values[i])
		if literal == "" {
			return "", badRequest("the page does not begin after a key of the table: begin anew")
		}
		name := catalog.QuoteName(k.name)
		if i == 0 {
			first = name + " >= " + literal
		}
		alternatives = append(alternatives, "("+equal+name+" > "+literal+")")
		equal += name + " = " + literal + " AND "
	}
	if len(key) == 1 {
		return alternatives[0], nil
	}
	return first + " AND (" + strings.Join(alternatives, " OR ") + ")", nil
}

// quote is a text as a literal of SQL, whatever sql_mode says of backslashes.
func quote(text string) string { return "_utf8mb4 X'" + hex.EncodeToString([]byte(text)) + "'" }
