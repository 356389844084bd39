package ast

func (f *formatter) position(p Position) {
	switch {
	case p.First:
		f.s(" first")
	case p.After != "":
		f.s(" after ")
		f.name(p.After)
	}
}

func (f *formatter) alterSpec(a AlterSpec) {
	switch a := a.(type) {
	case *AddColumns:
		f.addColumns(a)
	case *DropColumn:
		f.s("drop column ")
		f.opt(a.IfExists, "if exists ")
		f.name(a.Name)
	case *ChangeColumn:
		f.s("change column ")
		f.opt(a.IfExists, "if exists ")
		f.name(a.Old)
		f.s(" ")
		f.columnDef(&a.Column)
		f.position(a.Position)
	case *RenameColumn:
		f.s("rename column ")
		f.name(a.Old)
		f.s(" to ")
		f.name(a.New)
	case *SetDefault:
		f.s("alter column ")
		f.name(a.Column)
		if a.Default == nil {
			f.s(" drop default")
		} else {
			f.s(" set default ")
			f.defaultValue(a.Default, a.DefaultExpr)
		}
	case *AddIndex:
		f.s("add ")
		f.index(&a.Index)
	case *AddForeignKey:
		f.s("add ")
		f.foreignKey(&a.ForeignKey)
	case *AddCheck:
		f.s("add ")
		f.check(&a.Check)
	case *DropIndexSpec:
		if a.Name == "PRIMARY" && !a.IfExists {
			f.s("drop primary key")
			return
		}
		f.s("drop index ")
		f.opt(a.IfExists, "if exists ")
		f.name(a.Name)
	default:
		f.rareSpec(a)
	}
}

func (f *formatter) addColumns(a *AddColumns) {
	f.s("add column ")
	f.opt(a.IfNotExists, "if not exists ")
	if len(a.Columns) == 1 && len(a.Indexes)+len(a.ForeignKeys)+len(a.Checks) == 0 {
		f.columnDef(&a.Columns[0])
		f.position(a.Position)
		return
	}
	f.s("(")
	f.elements(a.Columns, a.Indexes, a.ForeignKeys, a.Checks)
	f.s(")")
}

func (f *formatter) rareSpec(a AlterSpec) {
	switch a := a.(type) {
	case *DropForeignKey:
		f.s("drop foreign key ")
		f.name(a.Name)
	case *DropConstraint:
		f.s("drop constraint ")
		f.name(a.Name)
	case *SetCheckEnforced:
		f.s("alter check ")
		f.name(a.Name)
		f.opt(a.NotEnforced, " not")
		f.s(" enforced")
	case *SetIndexVisible:
		f.s("alter index ")
		f.name(a.Name)
		f.s(visibility(a.Invisible))
	case *SetColumnVisible:
		f.s("alter column ")
		f.name(a.Column)
		f.s(" set", visibility(a.Invisible))
	case *RenameIndex:
		f.s("rename index ")
		f.name(a.Old)
		f.s(" to ")
		f.name(a.New)
	case *RenameTo:
		f.s("rename to ")
		f.table(a.Table)
	case *SetOptions:
		for i := range a.Options {
			f.opt(i > 0, " ")
			f.option(&a.Options[i])
		}
	case *ConvertCharset:
		f.s("convert to character set ")
		f.charsetOrDefault(a.Charset)
		if a.Collate != "" {
			f.s(" collate ", a.Collate)
		}
	case *SetKeys:
		if a.Disable {
			f.s("disable keys")
		} else {
			f.s("enable keys")
		}
	case *OrderRows:
		f.s("order by ")
		f.order(a.By)
	case *Force:
		f.s("force")
	}
}

func visibility(invisible bool) string {
	if invisible {
		return " invisible"
	}
	return " visible"
}
