package catalog

import (
	"slices"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// ShowCreateTable is the text of SHOW CREATE TABLE, byte for byte as MySQL 8 has it.
// nextAuto is the next AUTO_INCREMENT value, 0 or 1 if it is not to be shown.
func ShowCreateTable(t *record.Table, nextAuto uint64) string {
	b := append([]byte("CREATE TABLE "), QuoteName(t.Name)...)
	sep := " (\n  "
	for _, c := range visible(t) {
		b = append(b, sep...)
		b = appendColumn(b, t, c)
		sep = ",\n  "
	}
	for _, ix := range Indexes(t) {
		b = append(b, sep...)
		b = appendIndex(b, t, ix)
	}
	for _, k := range sortedKeys(t) {
		b = append(b, sep...)
		b = appendForeignKey(b, t, k)
	}
	for _, c := range Checks(t) {
		b = append(b, sep...)
		b = append(AppendName(append(b, "CONSTRAINT "...), c.Name), " CHECK "...)
		b = append(append(append(b, '('), c.Expr...), ')')
		if !c.Enforced {
			b = append(b, " /*!80016 NOT ENFORCED */"...)
		}
	}
	b = append(b, "\n) ENGINE=InnoDB"...)
	return string(appendOptions(b, t, nextAuto))
}

func appendColumn(b []byte, t *record.Table, c *record.Column) []byte {
	b = append(AppendName(b, c.Name), ' ')
	b = appendType(b, &c.Type)
	b = appendCharset(b, t, c)
	if c.Generated != "" {
		kind := " STORED"
		if IsVirtual(t, c) {
			kind = " VIRTUAL"
		}
		b = append(append(append(append(b, " GENERATED ALWAYS AS ("...), c.Generated...), ')'), kind...)
	}
	switch {
	case c.Type.NotNull:
		b = append(b, " NOT NULL"...)
	case c.Type.Kind == types.KindTimestamp:
		b = append(b, " NULL"...)
	}
	if c.HasDefault && c.Generated == "" && !(Default(c) == DefaultNull && c.Type.IsLong() && c.Type.Kind != types.KindJSON) {
		b = append(append(b, " DEFAULT "...), c.Default...)
	}
	if c.OnUpdate != "" {
		b = append(append(b, " ON UPDATE "...), c.OnUpdate...)
	}
	if c.AutoIncrement {
		b = append(b, " AUTO_INCREMENT"...)
	}
	if c.Invisible {
		b = append(b, " /*!80023 INVISIBLE */"...)
	}
	if c.Comment != "" {
		b = appendEscaped(append(b, " COMMENT "...), c.Comment)
	}
	return b
}

// appendCharset appends what says of a column's collation that the table's does not.
func appendCharset(b []byte, t *record.Table, c *record.Column) []byte {
	if !c.Type.IsText() && c.Type.Kind != types.KindEnum && c.Type.Kind != types.KindSet {
		return b
	}
	given := t.Options[attrShown+strconv.FormatUint(uint64(c.ID), 10)] != ""
	if c.Type.Collation != t.Collation || given {
		b = append(append(b, " CHARACTER SET "...), CharsetOf(c.Type.Collation).Name...)
	}
	if !IsDefaultCollation(c.Type.Collation) || given ||
		c.Type.Collation == types.CollationUTF8MB40900AI && t.Collation != c.Type.Collation {
		b = append(append(b, " COLLATE "...), collationName(c.Type.Collation)...)
	}
	return b
}

func collationName(id types.CollationID) string {
	if c := types.CollationByID(id); c != nil {
		return c.Name()
	}
	return ""
}

func appendIndex(b []byte, t *record.Table, ix *record.Index) []byte {
	switch {
	case ix.Name == primaryName:
		b = append(b, "PRIMARY KEY"...)
	case ix.Unique:
		b = AppendName(append(b, "UNIQUE KEY "...), ix.Name)
	default:
		b = AppendName(append(b, "KEY "...), ix.Name)
	}
	sep := " ("
	for _, p := range ix.Parts {
		b = append(b, sep...)
		sep = ","
		b = appendPart(b, t, p)
	}
	b = append(b, ')')
	if u := t.Options[attrHash+dict.Fold(ix.Name)]; u != "" {
		b = append(append(b, " USING "...), u...)
	}
	if ix.Comment != "" {
		b = appendEscaped(append(b, " COMMENT "...), ix.Comment)
	}
	if ix.Invisible {
		b = append(b, " /*!80000 INVISIBLE */"...)
	}
	return b
}

func appendPart(b []byte, t *record.Table, p record.Part) []byte {
	c := t.Column(p.Column)
	if c.Hidden && c.Generated != "" {
		b = append(append(append(b, '('), c.Generated...), ')')
	} else {
		b = AppendName(b, c.Name)
	}
	if p.Prefix != 0 {
		b = appendLength(b, int(p.Prefix), -1)
	}
	if p.Desc {
		b = append(b, " DESC"...)
	}
	return b
}

func appendForeignKey(b []byte, t *record.Table, k *record.ForeignKey) []byte {
	b = append(AppendName(append(b, "CONSTRAINT "...), k.Name), " FOREIGN KEY ("...)
	for i, id := range k.Columns {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = AppendName(b, t.Column(id).Name)
	}
	b = append(b, ") REFERENCES "...)
	if k.RefSchema != t.Schema {
		b = append(AppendName(b, k.RefSchema), '.')
	}
	b = append(AppendName(b, k.RefTable), " ("...)
	for i, name := range k.RefColumns {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = AppendName(b, name)
	}
	b = append(b, ')')
	b = appendAction(b, " ON DELETE ", OnDelete(k))
	return appendAction(b, " ON UPDATE ", OnUpdate(k))
}

func appendAction(b []byte, clause string, a ast.Action) []byte {
	if a == ast.ActionDefault || a == ast.ActionNoAction {
		return b
	}
	return append(append(b, clause...), ActionText(a)...)
}

// ActionText is the name of a foreign key's action.
func ActionText(a ast.Action) string {
	switch a {
	case ast.ActionRestrict:
		return "RESTRICT"
	case ast.ActionCascade:
		return "CASCADE"
	case ast.ActionSetNull:
		return "SET NULL"
	case ast.ActionSetDefault:
		return "SET DEFAULT"
	}
	return "NO ACTION"
}

// shownOptions are the options of a table in the order of SHOW CREATE TABLE; those in
// quotes are strings.
var shownOptions = []string{"MIN_ROWS", "MAX_ROWS", "AVG_ROW_LENGTH", "PACK_KEYS",
	"STATS_SAMPLE_PAGES", "CHECKSUM", "DELAY_KEY_WRITE", "ROW_FORMAT", "KEY_BLOCK_SIZE", "COMPRESSION"}

func appendOptions(b []byte, t *record.Table, nextAuto uint64) []byte {
	if nextAuto > 1 && hasAuto(t) {
		b = strconv.AppendUint(append(b, " AUTO_INCREMENT="...), nextAuto, 10)
	}
	b = append(append(b, " DEFAULT CHARSET="...), CharsetOf(t.Collation).Name...)
	if !IsDefaultCollation(t.Collation) || t.Collation == types.CollationUTF8MB40900AI {
		b = append(append(b, " COLLATE="...), collationName(t.Collation)...)
	}
	for _, name := range shownOptions {
		v := t.Options[attrOption+name]
		if v == "" {
			continue
		}
		b = append(append(append(b, ' '), name...), '=')
		if name == "COMPRESSION" {
			b = appendEscaped(b, v)
		} else {
			b = append(b, v...)
		}
	}
	if t.Comment != "" {
		b = appendEscaped(append(b, " COMMENT="...), t.Comment)
	}
	return b
}

func hasAuto(t *record.Table) bool {
	for _, c := range visible(t) {
		if c.AutoIncrement {
			return true
		}
	}
	return false
}

// OptionsText is the column Create_options of SHOW TABLE STATUS.
func OptionsText(t *record.Table) string {
	var parts []string
	for _, name := range shownOptions {
		if v := t.Options[attrOption+name]; v != "" {
			parts = append(parts, strings.ToLower(name)+"="+v)
		}
	}
	return strings.Join(parts, " ")
}

// RowFormat is the column Row_format of SHOW TABLE STATUS.
func RowFormat(t *record.Table) string {
	switch v := t.Options[attrOption+"ROW_FORMAT"]; v {
	case "", "DYNAMIC":
		return "Dynamic"
	default:
		return v[:1] + strings.ToLower(v[1:])
	}
}

// sortedKeys are a table's foreign keys by their names, as MySQL shows them.
func sortedKeys(t *record.Table) []*record.ForeignKey {
	keys := make([]*record.ForeignKey, len(t.ForeignKeys))
	for i := range keys {
		keys[i] = &t.ForeignKeys[i]
	}
	slices.SortStableFunc(keys, func(a, b *record.ForeignKey) int { return strings.Compare(dict.Fold(a.Name), dict.Fold(b.Name)) })
	return keys
}

// ShowCreateView is the text of SHOW CREATE VIEW. ok is false for a table.
func ShowCreateView(t *record.Table, withSchema bool) (text string, ok bool) {
	v, ok := ViewOf(t)
	if !ok {
		return "", false
	}
	b := append([]byte("CREATE ALGORITHM="), v.Algorithm...)
	b = append(AppendName(append(b, " DEFINER="...), v.Definer.Name), '@')
	b = append(AppendName(b, v.Definer.Host), " SQL SECURITY "...)
	if v.Invoker {
		b = append(b, "INVOKER VIEW "...)
	} else {
		b = append(b, "DEFINER VIEW "...)
	}
	if withSchema {
		b = append(AppendName(b, t.Schema), '.')
	}
	b = AppendName(b, t.Name)
	if v.Named {
		sep := " ("
		for _, c := range visible(t) {
			b = AppendName(append(b, sep...), c.Name)
			sep = ","
		}
		b = append(b, ')')
	}
	b = append(append(b, " AS "...), v.Query...)
	if v.CheckOption != "" {
		b = append(append(append(b, " WITH "...), v.CheckOption...), " CHECK OPTION"...)
	}
	return string(b), true
}

// ShowCreateSchema is the text of SHOW CREATE DATABASE.
func ShowCreateSchema(s dict.Schema, ifNotExists bool) string {
	b := []byte("CREATE DATABASE ")
	if ifNotExists {
		b = append(b, "/*!32312 IF NOT EXISTS*/ "...)
	}
	b = append(AppendName(b, s.Name), " /*!40100 DEFAULT CHARACTER SET "...)
	b = append(b, CharsetOf(s.Collation).Name...)
	if !IsDefaultCollation(s.Collation) || s.Collation == types.CollationUTF8MB40900AI {
		b = append(append(b, " COLLATE "...), collationName(s.Collation)...)
	}
	b = append(b, " */ /*!80016 DEFAULT ENCRYPTION='N' */"...)
	return string(b)
}
