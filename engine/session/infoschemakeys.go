package session

import (
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
)

var infoConstraints = []made{
	{infoSchema, "KEY_COLUMN_USAGE", "CONSTRAINT_CATALOG, CONSTRAINT_SCHEMA name, CONSTRAINT_NAME, " + catalogColumn + ", COLUMN_NAME, ORDINAL_POSITION int unsigned, " +
		"POSITION_IN_UNIQUE_CONSTRAINT int unsigned, REFERENCED_TABLE_SCHEMA name, REFERENCED_TABLE_NAME name, REFERENCED_COLUMN_NAME", rowsKeyUsage},
	{infoSchema, "TABLE_CONSTRAINTS", "CONSTRAINT_CATALOG, CONSTRAINT_SCHEMA name, CONSTRAINT_NAME, TABLE_SCHEMA name, TABLE_NAME name, CONSTRAINT_TYPE varchar(11), ENFORCED varchar(3)", rowsTableConstraints},
	{infoSchema, "REFERENTIAL_CONSTRAINTS", "CONSTRAINT_CATALOG, CONSTRAINT_SCHEMA name, CONSTRAINT_NAME, UNIQUE_CONSTRAINT_CATALOG, UNIQUE_CONSTRAINT_SCHEMA name, UNIQUE_CONSTRAINT_NAME, " +
		"MATCH_OPTION enum('NONE';'PARTIAL';'FULL'), UPDATE_RULE varchar(11), DELETE_RULE varchar(11), TABLE_NAME name, REFERENCED_TABLE_NAME name", rowsReferential},
	{infoSchema, "CHECK_CONSTRAINTS", "CONSTRAINT_CATALOG, CONSTRAINT_SCHEMA name, CONSTRAINT_NAME, CHECK_CLAUSE longtext", rowsChecks},
	{infoSchema, "TABLE_CONSTRAINTS_EXTENSIONS", "CONSTRAINT_CATALOG, CONSTRAINT_SCHEMA name, CONSTRAINT_NAME, TABLE_NAME name, ENGINE_ATTRIBUTE json, SECONDARY_ENGINE_ATTRIBUTE json", nil},
}

// eachKeyed is eachTable without what has no keys.
func (q *virtualRows) eachKeyed(schemaColumn, nameColumn int, fn func(d *record.Table) error) error {
	return q.eachTable(schemaColumn, nameColumn, func(t *listed) error {
		if t.virtual || catalog.IsView(t.def) {
			return nil
		}
		return fn(t.def)
	})
}

func rowsKeyUsage(q *virtualRows) error {
	if _, ok := q.equal(1); ok && len(q.pred.Equal) == 1 { // the schema of a constraint is its table's
		q.pred.Equal = map[int]string{4: q.pred.Equal[1]}
	}
	return q.eachKeyed(4, 5, func(d *record.Table) error {
		for _, ix := range catalog.Indexes(d) {
			if !ix.Unique {
				continue
			}
			for i, p := range ix.Parts {
				if c := d.Column(p.Column); !c.Hidden {
					q.row("def", d.Schema, ix.Name, "def", d.Schema, d.Name, c.Name, i+1, nil, nil, nil, nil)
				}
			}
		}
		for i := range d.ForeignKeys {
			k := &d.ForeignKeys[i]
			for n, id := range k.Columns {
				q.row("def", d.Schema, k.Name, "def", d.Schema, d.Name, d.Column(id).Name, n+1, n+1, k.RefSchema, k.RefTable, k.RefColumns[n])
			}
		}
		return nil
	})
}

func rowsTableConstraints(q *virtualRows) error {
	return q.eachKeyed(3, 4, func(d *record.Table) error {
		for _, ix := range catalog.Indexes(d) {
			switch {
			case ix == catalog.PrimaryKey(d):
				q.row("def", d.Schema, ix.Name, d.Schema, d.Name, "PRIMARY KEY", "YES")
			case ix.Unique:
				q.row("def", d.Schema, ix.Name, d.Schema, d.Name, "UNIQUE", "YES")
			}
		}
		for i := range d.ForeignKeys {
			q.row("def", d.Schema, d.ForeignKeys[i].Name, d.Schema, d.Name, "FOREIGN KEY", "YES")
		}
		for _, c := range catalog.Checks(d) {
			q.row("def", d.Schema, c.Name, d.Schema, d.Name, "CHECK", yesNo(c.Enforced))
		}
		return nil
	})
}

func rowsReferential(q *virtualRows) error {
	return q.eachKeyed(1, 9, func(d *record.Table) error {
		for i := range d.ForeignKeys {
			k := &d.ForeignKeys[i]
			q.row("def", d.Schema, k.Name, "def", k.RefSchema, q.parentKey(k), "NONE", catalog.ActionText(catalog.OnUpdate(k)), catalog.ActionText(catalog.OnDelete(k)), d.Name, k.RefTable)
		}
		return nil
	})
}

// parentKey is the name of the unique key that a foreign key refers to; NULL if it is
// none.
func (q *virtualRows) parentKey(k *record.ForeignKey) any {
	h, err := q.s.eng.Catalog.OpenTable(nil, k.RefSchema, k.RefTable)
	if err != nil {
		return nil // it need not be there
	}
	defer h.Release()
	d := h.Table().Schema.Table
	for _, ix := range catalog.Indexes(d) {
		if !ix.Unique || len(ix.Parts) != len(k.RefColumns) {
			continue
		}
		same := true
		for i, p := range ix.Parts {
			same = same && dict.Fold(d.Column(p.Column).Name) == dict.Fold(k.RefColumns[i])
		}
		if same {
			return ix.Name
		}
	}
	return nil
}

func rowsChecks(q *virtualRows) error {
	return q.eachKeyed(1, -1, func(d *record.Table) error {
		for _, c := range catalog.Checks(d) {
			q.row("def", d.Schema, c.Name, escapedExpression(c.Expr))
		}
		return nil
	})
}
