package session

import (
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

const catalogColumn = "TABLE_CATALOG, TABLE_SCHEMA name, TABLE_NAME name"

var infoTables = []made{
	{infoSchema, "SCHEMATA", "CATALOG_NAME, SCHEMA_NAME name, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME, SQL_PATH, DEFAULT_ENCRYPTION enum('NO';'YES')", rowsSchemata},
	{infoSchema, "TABLES", catalogColumn + ", TABLE_TYPE enum('BASE TABLE';'VIEW';'SYSTEM VIEW'), ENGINE, VERSION int, ROW_FORMAT enum('Fixed';'Dynamic';'Compressed';'Redundant';'Compact';'Paged'), " +
		"TABLE_ROWS bigint unsigned, AVG_ROW_LENGTH bigint unsigned, DATA_LENGTH bigint unsigned, MAX_DATA_LENGTH bigint unsigned, INDEX_LENGTH bigint unsigned, " +
		"DATA_FREE bigint unsigned, AUTO_INCREMENT bigint unsigned, CREATE_TIME datetime, UPDATE_TIME datetime, CHECK_TIME datetime, TABLE_COLLATION, CHECKSUM bigint, " +
		"CREATE_OPTIONS varchar(256), TABLE_COMMENT text", rowsTables},
	{infoSchema, "COLUMNS", catalogColumn + ", COLUMN_NAME, ORDINAL_POSITION int unsigned, COLUMN_DEFAULT text, IS_NULLABLE varchar(3), DATA_TYPE longtext, " +
		"CHARACTER_MAXIMUM_LENGTH bigint, CHARACTER_OCTET_LENGTH bigint, NUMERIC_PRECISION bigint unsigned, NUMERIC_SCALE bigint unsigned, DATETIME_PRECISION int unsigned, " +
		"CHARACTER_SET_NAME, COLLATION_NAME, COLUMN_TYPE mediumtext, COLUMN_KEY enum('';'PRI';'UNI';'MUL'), EXTRA varchar(256), PRIVILEGES varchar(154), COLUMN_COMMENT text, " +
		"GENERATION_EXPRESSION longtext, SRS_ID int unsigned", rowsColumns},
	{infoSchema, "STATISTICS", catalogColumn + ", NON_UNIQUE int, INDEX_SCHEMA name, INDEX_NAME, SEQ_IN_INDEX int unsigned, COLUMN_NAME, COLLATION varchar(1), CARDINALITY bigint, " +
		"SUB_PART bigint, PACKED binary(0), NULLABLE varchar(3), INDEX_TYPE varchar(11), COMMENT varchar(8), INDEX_COMMENT varchar(2048), IS_VISIBLE varchar(3), EXPRESSION longtext", rowsStatistics},
	{infoSchema, "VIEWS", catalogColumn + ", VIEW_DEFINITION longtext, CHECK_OPTION enum('NONE';'LOCAL';'CASCADED'), IS_UPDATABLE enum('NO';'YES'), DEFINER varchar(288), SECURITY_TYPE varchar(7), " +
		"CHARACTER_SET_CLIENT, COLLATION_CONNECTION", rowsViews},
}

func rowsSchemata(q *virtualRows) error {
	return q.eachSchema(1, func(of dict.Schema) error {
		q.row("def", of.Name, catalog.CharsetOf(of.Collation).Name, collationText(of.Collation), nil, "NO")
		return nil
	})
}

func rowsTables(q *virtualRows) error {
	return q.eachTable(1, 2, func(t *listed) error {
		d := t.def
		switch {
		case catalog.IsView(d):
			comment := "VIEW"
			if slices.Contains(q.pred.Fetch, len(q.def.Columns)-1) {
				broken, err := q.broken(d)
				if err != nil {
					return err
				}
				if broken != nil {
					comment = broken.Message
				}
			}
			q.row("def", d.Schema, d.Name, "VIEW", nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, q.time(catalog.Created(d)), nil, nil, nil, nil, nil, comment)
			return nil
		case t.virtual && d.Schema != infoSchema:
			engine := "InnoDB"
			if d.Schema == perfSchema {
				engine = "PERFORMANCE_SCHEMA"
			}
			q.row("def", d.Schema, d.Name, "BASE TABLE", engine, 10, "Dynamic", nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, collationText(types.CollationUTF8MB40900AI), nil, "", "")
			return nil
		case t.virtual:
			q.row("def", d.Schema, d.Name, "SYSTEM VIEW", nil, 10, nil, 0, 0, 0, 0, 0, 0, nil, nil, nil, nil, nil, nil, "", "")
			return nil
		}
		rows := t.open.Rows()
		data := int64(t.open.Space().SizePages()) * pageSize
		average := int64(0)
		if rows > 0 {
			average = data / rows
		}
		var auto any
		for _, c := range catalog.Columns(d) {
			if c.AutoIncrement {
				auto = t.open.NextAuto()
			}
		}
		q.row("def", d.Schema, d.Name, "BASE TABLE", "InnoDB", 10, catalog.RowFormat(d), rows, average, data, 0, 0, 0, auto, q.time(catalog.Created(d)), nil, nil,
			collationText(d.Collation), nil, catalog.OptionsText(d), d.Comment)
		return nil
	})
}

const pageSize = 16 << 10

// time is a moment in the session's time zone; NULL for zero.
func (q *virtualRows) time(micros int64) any {
	if micros == 0 {
		return nil
	}
	d := types.Timestamp(micros / 1e6 * 1e6).In(q.s.x.Location)
	return types.NewDateTime(d)
}

func rowsColumns(q *virtualRows) error {
	a := q.s.privileges()
	if q.s.work.described != nil {
		a = everything
	}
	return q.eachTable(1, 2, func(t *listed) error {
		if broken, err := q.broken(t.def); broken != nil || err != nil {
			return err
		}
		keys := columnKeys(t.def)
		for i, c := range catalog.Columns(t.def) {
			if a.SeesColumn(t.def.Schema, t.def.Name, c.Name) {
				q.column(t, c, i+1, keys[c.ID], columnPrivileges(a, t.def.Schema, t.def.Name, c.Name))
			}
		}
		return nil
	})
}

// broken warns of a view that names what is not there (1356), and returns the warning.
func (q *virtualRows) broken(d *record.Table) (*sqlerr.Error, error) {
	v, ok := catalog.ViewOf(d)
	if !ok {
		return nil, nil
	}
	broken, err := q.s.brokenView(d, v)
	if broken != nil {
		q.s.diag.warn(broken)
	}
	return broken, err
}

// columnKeys are the values of COLUMN_KEY by column number.
func columnKeys(d *record.Table) map[uint32]string {
	keys := map[uint32]string{}
	rank := map[string]int{"MUL": 1, "UNI": 2, "PRI": 3}
	for _, ix := range catalog.Indexes(d) {
		primary := ix == catalog.PrimaryKey(d)
		for i, p := range ix.Parts {
			key := ""
			switch {
			case primary:
				key = "PRI"
			case i == 0 && ix.Unique && len(ix.Parts) == 1:
				key = "UNI"
			case i == 0:
				key = "MUL"
			}
			if rank[key] > rank[keys[p.Column]] {
				keys[p.Column] = key
			}
		}
	}
	if catalog.PrimaryKey(d) == nil { // the first unique key without NULL stands for it
		for _, ix := range catalog.Indexes(d) {
			if !ix.Unique {
				break
			}
			whole := true
			for _, p := range ix.Parts {
				whole = whole && d.Column(p.Column).Type.NotNull && p.Prefix == 0
			}
			if whole {
				for _, p := range ix.Parts {
					keys[p.Column] = "PRI"
				}
				break
			}
		}
	}
	return keys
}

// column adds a column of a table to COLUMNS.
func (q *virtualRows) column(t *listed, c *record.Column, position int, key, privileges string) {
	ty := &c.Type
	var chars, octets, precision, scale, fsp, charset, collation any
	switch {
	case ty.Kind == types.KindEnum || ty.Kind == types.KindSet:
		n := memberLength(ty)
		chars, octets = n, n*int64(ty.Charset().MaxLen())
	case ty.Kind == types.KindJSON:
	case ty.IsText():
		octets, chars = ty.MaxBytes(), ty.MaxBytes()/int64(ty.Charset().MaxLen())
		if ty.IsLong() {
			chars = ty.MaxBytes() / int64(ty.Charset().Unit())
		}
	case ty.IsBlob():
		octets, chars = ty.MaxBytes(), ty.MaxBytes()
	}
	if ty.IsText() || ty.Kind == types.KindEnum || ty.Kind == types.KindSet {
		charset, collation = catalog.CharsetOf(ty.Collation).Name, collationText(ty.Collation)
	}
	precision, scale = numericPrecision(ty)
	if ty.Kind == types.KindTime || ty.Kind == types.KindDateTime || ty.Kind == types.KindTimestamp {
		fsp = int(ty.FSP)
	}
	value, extra := columnDefault(c), columnExtra(t.def, c)
	if of := shapeOf[t.def]; of != nil {
		key, value, extra = of[position-1].key, of[position-1].value, of[position-1].extra
	}
	q.row("def", t.def.Schema, t.def.Name, c.Name, position, value, yesNo(!ty.NotNull), ty.Kind.String(), chars, octets, precision, scale, fsp, charset, collation,
		catalog.TypeText(ty), key, extra, privileges, c.Comment, escapedExpression(c.Generated), nil)
}

// escapedExpression is an expression as information_schema has it: with backslashes before
// quotes.
func escapedExpression(text string) string { return strings.ReplaceAll(text, "'", `\'`) }

func memberLength(t *types.Type) int64 {
	n, sum := 0, 0
	for _, m := range t.Members {
		k := t.Charset().Count([]byte(m))
		n, sum = max(n, k), sum+k
	}
	if t.Kind == types.KindSet {
		return int64(sum + len(t.Members) - 1)
	}
	return int64(n)
}

func numericPrecision(t *types.Type) (precision, scale any) {
	switch t.Kind {
	case types.KindTinyInt:
		return 3, 0
	case types.KindSmallInt:
		return 5, 0
	case types.KindMediumInt:
		return 7, 0
	case types.KindInt:
		return 10, 0
	case types.KindBigInt:
		if t.Unsigned {
			return 20, 0
		}
		return 19, 0
	case types.KindDecimal:
		return int(t.Precision), int(t.Scale)
	case types.KindFloat, types.KindDouble:
		if t.Precision > 0 {
			return int(t.Precision), int(t.Scale)
		}
		if t.Kind == types.KindFloat {
			return 12, nil
		}
		return 22, nil
	case types.KindBit:
		return int(t.Length), nil
	}
	return nil, nil
}

// columnDefault is a default as COLUMNS and SHOW COLUMNS have it: the value of a literal, the text
// of an expression.
func columnDefault(c *record.Column) any {
	switch catalog.Default(c) {
	case catalog.DefaultNone, catalog.DefaultNull:
		return nil
	case catalog.DefaultLiteral:
		return literalDefault(c.Default)
	case catalog.DefaultExpr:
		return escapedExpression(catalog.DefaultText(c))
	}
	return c.Default
}

// literalDefault is the value of a quoted literal; others stay as they are.
func literalDefault(text string) string {
	if !strings.HasPrefix(text, "'") {
		return text
	}
	text = text[1 : len(text)-1]
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if i+1 < len(text) && (c == '\'' || c == '\\') {
			i++
			switch {
			case c == '\\' && text[i] == 'n':
				c = '\n'
			case c == '\\' && text[i] == 'r':
				c = '\r'
			case c == '\\' && text[i] == '0':
				c = 0
			default:
				c = text[i]
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}

// columnExtra is the column EXTRA.
func columnExtra(d *record.Table, c *record.Column) string {
	var parts []string
	switch {
	case c.AutoIncrement:
		parts = append(parts, "auto_increment")
	case c.Generated != "" && catalog.IsVirtual(d, c):
		parts = append(parts, "VIRTUAL GENERATED")
	case c.Generated != "":
		parts = append(parts, "STORED GENERATED")
	}
	if k := catalog.Default(c); k == catalog.DefaultExpr || k == catalog.DefaultNow {
		parts = append(parts, "DEFAULT_GENERATED")
	}
	if c.OnUpdate != "" {
		parts = append(parts, "on update "+c.OnUpdate)
	}
	if c.Invisible {
		parts = append(parts, "INVISIBLE")
	}
	return strings.Join(parts, " ")
}

func rowsStatistics(q *virtualRows) error {
	return q.eachTable(1, 2, func(t *listed) error {
		if t.virtual || catalog.IsView(t.def) {
			return nil
		}
		rows := t.open.Rows()
		for _, ix := range catalog.Indexes(t.def) {
			nonUnique := 1
			if ix.Unique {
				nonUnique = 0
			}
			for i, p := range ix.Parts {
				c := t.def.Column(p.Column)
				var name, prefix, expression any = c.Name, nil, nil
				if c.Hidden {
					name, expression = nil, escapedExpression(c.Generated)
				}
				if p.Prefix != 0 {
					prefix = int(p.Prefix)
				}
				order := "A"
				if p.Desc {
					order = "D"
				}
				nullable := ""
				if !c.Type.NotNull {
					nullable = "YES"
				}
				q.row("def", t.def.Schema, t.def.Name, nonUnique, t.def.Schema, ix.Name, i+1, name, order, rows, prefix, nil, nullable, "BTREE", "", ix.Comment,
					yesNo(!ix.Invisible), expression)
			}
		}
		return nil
	})
}

// maySeeQuery reports whether the query of a view may be seen: by its definer, and by accounts that SHOW CREATE
// VIEW shows it to.
func (s *Session) maySeeQuery(def *record.Table, v catalog.View) bool {
	if priv.NewID(v.Definer.Name, v.Definer.Host) == s.accountID() {
		return true
	}
	a := s.privileges()
	reads := a.AnyTable(def.Schema, def.Name, priv.Select, "SHOW VIEW") == nil
	return reads && a.TableMask(def.Schema, def.Name)&priv.ShowView != 0
}

func rowsViews(q *virtualRows) error {
	return q.eachTable(1, 2, func(t *listed) error {
		v, ok := catalog.ViewOf(t.def)
		if !ok {
			return nil
		}
		query, err := catalog.ParseQuery(v.Query, q.s.holdsText)
		changed := err == nil && q.s.isUpdatable(query, v.Schema, v.Algorithm == "TEMPTABLE", viewsDeep)
		check := v.CheckOption
		if check == "" {
			check = "NONE"
		}
		security := "DEFINER"
		if v.Invoker {
			security = "INVOKER"
		}
		text := v.Query
		if !q.s.maySeeQuery(t.def, v) {
			text = "" // it tells of tables that need not be known to who reads the view
		}
		q.row("def", t.def.Schema, t.def.Name, text, check, yesNo(changed), v.Definer.Name+"@"+v.Definer.Host, security, v.Client, v.Connection)
		return nil
	})
}
