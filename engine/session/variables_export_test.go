package session

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Variable is what a test looks at of a variable.
type Variable struct {
	Name     string
	Settable bool // to other values than its own
	Kept     bool
	Acts     bool // by a function of its own
}

// Variables returns all variables.
func Variables() []Variable {
	var list []Variable
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		v := variables[name]
		list = append(list, Variable{name, v.settable(), v.scope&inert != 0,
			v.applied != nil || v.appliedGlobal != nil || v.scope&inGroup != 0 || v.get != nil && v.scope&inert == 0 || v.alias != nil})
	}
	return list
}

func (v *variable) settable() bool { return v.scope&(readOnly|fixedTo) == 0 }

// VariablesMarkdown is docs/variables.md.
func VariablesMarkdown() string {
	var b strings.Builder
	b.WriteString(`# System variables

Generated from ` + "`engine/session`" + `. What a variable does when it is set:

- acts: as MySQL documents it, or as [sql.md](sql.md) and [operations-group.md](operations-group.md) say.
- fixed: its value is the only one. Another one is refused, by SET (error 1231) and in the configuration.
- nothing: it is there so that programs made for MySQL run. Another value than the default is taken and shown, but for ` + "`sql_log_bin` and `gtid_purged`" + `, which dumps
  set and which stay as they are; the statement answers with warning 1235, and a start with it writes a line to the log.
- read-only: SET is refused (error 1238), and so is the configuration, but for the variables that are
  [settings of a node](configuration.md).

"Of the group" means that SET GLOBAL changes it on all nodes, and for good; other global values are those of one node until it stops.

| Name | Scope | Default | Set, it |
|---|---|---|---|
`)
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		v := variables[name]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, v.scopeText(), v.defaultText(), v.effect())
	}
	return b.String()
}

func (v *variable) scopeText() string {
	switch {
	case v.scope&inGroup != 0:
		return "of the group"
	case v.scope&anyBacking == anyBacking && v.scope&sessionRO != 0:
		return "global, shown by sessions"
	case v.scope&anyBacking == anyBacking:
		return "both"
	case v.scope&inGlobal != 0:
		return "global"
	}
	return "session"
}

func (v *variable) defaultText() string {
	if v.get != nil && v.scope&inert == 0 {
		return "*worked out*"
	}
	text := v.text(v.def)
	if v.kind == varString && v.def.n == 1 {
		text = "NULL"
	}
	if text == "" {
		return "empty"
	}
	return strings.ReplaceAll("`"+text+"`", "|", "\\|")
}

func (v *variable) effect() string {
	switch {
	case v.scope&inert != 0:
		return "nothing"
	case v.scope&fixedTo != 0:
		return "fixed"
	case v.scope&atStart != 0 && v.scope&readOnly != 0:
		return "read-only; a setting of the node"
	case v.scope&readOnly != 0:
		return "read-only"
	}
	return "acts"
}
