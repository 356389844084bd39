package session

import (
	"maps"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// shared is the variable that holds the value: itself, unless it is another name of one.
func (v *variable) shared() *variable {
	if v.alias != nil {
		return v.alias
	}
	return v
}

// value is the session's value of a variable, or the global one where there is no
// other.
func (s *Session) value(v *variable) varValue {
	v = v.shared()
	if v.get != nil {
		return v.get(s, false)
	}
	if v.scope&inSession == 0 {
		return s.m.global(v)
	}
	if x, ok := s.own[v.slot]; ok {
		return x
	}
	return s.base[v.slot]
}

// globalValue is the global value of a variable.
func (s *Session) globalValue(v *variable) varValue {
	v = v.shared()
	if v.scope&inGroup != 0 {
		if n, ok := s.m.opt.Backend.GroupSetting(v.name); ok {
			return varValue{n: uint64(n)}
		}
	}
	if v.get != nil {
		return v.get(s, true)
	}
	return s.m.global(v)
}

// assign keeps a value of the session's without telling anybody.
func (s *Session) assign(v *variable, x varValue) {
	v = v.shared()
	if s.own == nil {
		s.own = map[int]varValue{}
	}
	s.own[v.slot] = x
}

// setVar gives a variable of the session a value that is known to fit.
func (s *Session) setVar(name string, x varValue) {
	v := variables[name].shared()
	s.assign(v, x)
	if v.applied != nil {
		v.applied(s, x)
	}
	s.tellVariable(v)
}

// tellVariable tracks a variable that the client wants to hear of.
func (s *Session) tellVariable(v *variable) {
	list := s.opt.trackVariables
	if list == "" || v.scope&inSession == 0 {
		return
	}
	if list != "*" {
		found := false
		for _, name := range strings.Split(list, ",") {
			found = found || strings.TrimSpace(name) == v.name
		}
		if !found {
			return
		}
	}
	s.change(ChangeVariable, v.name, v.text(s.value(v)))
}

// setSystem sets a system variable. The value is converted, not checked.
func (s *Session) setSystem(v *variable, scope ast.Scope, x varValue) error {
	v = v.shared()
	if v.check != nil {
		if err := v.check(s, &x); err != nil {
			return err
		}
	}
	switch scope {
	case ast.ScopeGlobal, ast.ScopePersist:
		if v.scope&inGroup != 0 {
			return s.m.opt.Backend.SetGroupSetting(v.name, int64(x.n))
		}
		if scope == ast.ScopePersist {
			s.diag.warn(sqlerr.Newf(sqlerr.NotSupportedYet, "SET PERSIST %s is SET GLOBAL: the value lasts until "+
				"this node stops; its configuration has what lasts", v.name))
		}
		s.m.setGlobal(v, x)
		return nil
	case ast.ScopePersistOnly:
		return notSupported("SET PERSIST_ONLY")
	}
	if v.get == nil {
		s.assign(v, x)
	}
	if v.applied != nil {
		v.applied(s, x)
	}
	s.tellVariable(v)
	return nil
}

// maySet checks the scope in which a variable is to be set. Errors: 1238, 1228, 1229.
func maySet(v *variable, scope ast.Scope) error {
	if v.scope&readOnly != 0 {
		return sqlerr.New(sqlerr.IncorrectGlobalLocalVar, v.name, "read only")
	}
	global := scope == ast.ScopeGlobal || scope == ast.ScopePersist || scope == ast.ScopePersistOnly
	switch {
	case global && v.scope&inGlobal == 0:
		return sqlerr.New(sqlerr.LocalVariable, v.name)
	case !global && v.scope&inSession == 0:
		return sqlerr.New(sqlerr.GlobalVariable, v.name)
	case !global && v.scope&sessionRO != 0:
		return sqlerr.Newf(sqlerr.IncorrectGlobalLocalVar, "SESSION variable '%s' is read-only. Use SET GLOBAL to "+
			"assign the value", v.name)
	}
	return nil
}

// runSet is SET. All values are worked out before the first is set.
func (s *Session) runSet(st *ast.Set) error {
	var later []func() error
	var idle []string
	owed := int64(0) // what values of user variables are counted with that are not set yet
	defer func() { _ = s.Hold(-owed) }()
	for i := range st.Items {
		do, err := s.prepareSet(&st.Items[i], st.Text(), &idle, &owed)
		if err != nil {
			return err
		}
		later = append(later, do)
	}
	for _, do := range later {
		if err := do(); err != nil {
			return err
		}
	}
	if len(idle) > 0 {
		s.diag.warn(catalog.KeptOnly("SET " + strings.Join(idle, ", ")))
	}
	return nil
}

// prepareSet checks an assignment of a statement with the text, and returns what makes it. The names of variables
// that mean nothing go to idle if they are to have another value than their default. A value that is kept until then is held, and
// added to owed.
func (s *Session) prepareSet(item *ast.SetItem, text string, idle *[]string, owed *int64) (func() error, error) {
	switch item.Kind {
	case ast.SetUser:
		v, t, err := s.evaluate(item.Value)
		if err != nil {
			return nil, err
		}
		held := longBytes(v)
		if err := s.Hold(held); err != nil {
			return nil, err
		}
		*owed += held
		v = v.Clone()
		return func() error {
			_ = s.Hold(-held)
			*owed -= held
			return s.keepUserVariable(item.Name, v, t)
		}, nil
	case ast.SetNames:
		return s.prepareNames(item)
	case ast.SetCharset:
		return s.prepareCharset(item)
	}
	v, err := findVariable(item.Name)
	if err != nil {
		return nil, err
	}
	if err := maySet(v, item.Scope); err != nil {
		return nil, err
	}
	if err := s.maySetVariable(v, item.Scope); err != nil {
		return nil, err
	}
	x, err := s.settingValue(v, item)
	if err != nil {
		return nil, err
	}
	if v.scope&fixedTo != 0 && x != v.def {
		return nil, fixedError(v, x)
	}
	if v.guarded && x.n > s.m.global(v).n {
		if err := s.privileges().Needs(priv.Super, "SYSTEM_VARIABLES_ADMIN", "SESSION_VARIABLES_ADMIN"); err != nil {
			return nil, err
		}
	}
	if v.scope&inert != 0 && x != v.def {
		*idle = append(*idle, v.name)
	}
	// SET @@transaction_isolation, without SESSION, is for the next transaction only.
	if item.Scope <= ast.ScopeSession && strings.Contains(strings.ToLower(text), "@@"+v.name) {
		switch v.shared().name {
		case "transaction_isolation":
			return func() error { return s.setNext(&x, nil) }, nil
		case "transaction_read_only":
			return func() error { return s.setNext(nil, &x) }, nil
		}
	}
	if v.name == "autocommit" && item.Scope != ast.ScopeGlobal {
		return func() error { return s.setAutocommit(v, item.Scope, x) }, nil
	}
	return func() error { return s.setSystem(v, item.Scope, x) }, nil
}

// fixedError refuses a value that is unsafe, or of something that is not there.
func fixedError(v *variable, x varValue) error {
	if v.unknown != nil {
		return v.unknown(v.text(x))
	}
	return sqlerr.Newf(sqlerr.WrongValueForVar, "Variable '%s' can't be set to the value of '%s': this server has it "+
		"at '%s' for good", v.name, v.text(x), v.text(v.def))
}

// setAutocommit also commits what is under way when autocommit is switched on.
func (s *Session) setAutocommit(v *variable, scope ast.Scope, x varValue) error {
	if x.n != 0 && !s.opt.autocommit {
		if err := s.implicitCommit(s.out.ctx); err != nil {
			return err
		}
	}
	return s.setSystem(v, scope, x)
}

// settingValue works out the value of a SET.
func (s *Session) settingValue(v *variable, item *ast.SetItem) (varValue, error) {
	global := item.Scope == ast.ScopeGlobal || item.Scope == ast.ScopePersist
	switch e := item.Value.(type) {
	case nil:
		if global || v.scope&inGlobal == 0 {
			return v.def, nil
		}
		return s.globalValue(v), nil
	case *ast.Default:
		if global || v.scope&inGlobal == 0 {
			return v.def, nil
		}
		return s.globalValue(v), nil
	case *ast.ColumnRef:
		return s.convertSetting(v, global, types.NewString(columnText(e)))
	}
	x, _, err := s.evaluate(item.Value)
	if err != nil {
		return varValue{}, err
	}
	return s.convertSetting(v, global, x)
}

// convertSetting turns a value of an expression into the variable's.
func (s *Session) convertSetting(v *variable, global bool, x types.Value) (varValue, error) {
	switch {
	case x.IsNull() && v.scope&nullable != 0:
		return varValue{n: 1}, nil
	case x.IsNull() && (v.kind == varInt || v.kind == varUint || v.kind == varDouble):
		return varValue{}, v.wrongType()
	case x.IsNull():
		return varValue{}, v.wrongValue("NULL")
	case v.flags && x.Class() == types.ClassBytes:
		now := s.value(v)
		if global {
			now = s.globalValue(v)
		}
		list, err := v.mergeFlags(now.s, string(x.Bytes()))
		return varValue{s: list}, err
	}
	return v.convert(x, s.diag.warn)
}

// columnText is a bare word, which the grammar takes for a column.
func columnText(c *ast.ColumnRef) string {
	text := c.Name
	if c.Table != "" {
		text = c.Table + "." + text
	}
	return text
}

// prepareNames is SET NAMES.
func (s *Session) prepareNames(item *ast.SetItem) (func() error, error) {
	name, collate := item.Charset, item.Collate
	if name == "" || strings.EqualFold(name, "default") {
		name = s.globalValue(variables["character_set_client"]).s
	}
	cs, err := charsetNamed(name)
	if err != nil {
		return nil, err
	}
	if cs.charset.IsWide() {
		return nil, variables["character_set_client"].wrongValue(name)
	}
	id := cs.collation
	if collate != "" {
		c, err := collationNamed(collate)
		if err != nil {
			return nil, err
		}
		if charsetOf(c) != cs.name {
			return nil, sqlerr.New(sqlerr.CollationCharsetMismatch, collate, cs.name)
		}
		id = asKept(c).ID()
	}
	return func() error {
		s.setNames(cs, id)
		return nil
	}, nil
}

// setNames sets the client's, the connection's and the results' character set.
func (s *Session) setNames(cs charsetInfo, id types.CollationID) {
	s.setVar("character_set_client", varValue{s: cs.name})
	s.setVar("character_set_results", varValue{s: cs.name})
	s.assign(variables["character_set_connection"], varValue{s: cs.name})
	s.tellVariable(variables["character_set_connection"])
	s.assign(variables["collation_connection"], varValue{s: types.CollationByID(id).Name()})
	s.x.Collation = id
}

// setCollation is setNames at connect: nobody is told.
func (s *Session) setCollation(id types.CollationID) {
	cs := charsetInfoOf(types.CollationByID(id).Charset())
	s.setNames(cs, id)
	s.changes = s.changes[:0]
}

// prepareCharset is SET CHARACTER SET: the connection's is the schema's.
func (s *Session) prepareCharset(item *ast.SetItem) (func() error, error) {
	name := item.Charset
	if name == "" || strings.EqualFold(name, "default") {
		name = s.globalValue(variables["character_set_client"]).s
	}
	cs, err := charsetNamed(name)
	if err != nil {
		return nil, err
	}
	if cs.charset.IsWide() {
		return nil, variables["character_set_client"].wrongValue(name)
	}
	return func() error {
		s.setVar("character_set_client", varValue{s: cs.name})
		s.setVar("character_set_results", varValue{s: cs.name})
		connection := s.value(variables["collation_database"])
		if r, ok := types.CollationByName(connection.s).(types.Recoded); ok && types.CollationByName(connection.s).Charset().IsWide() {
			connection.s = r.InUTF8().Name()
		}
		s.setVar("collation_connection", connection)
		return nil
	}, nil
}

// setSchemaCollation makes @@collation_database that of the current schema.
func (s *Session) setSchemaCollation(id types.CollationID) {
	c := types.CollationByID(id)
	if c == nil {
		return
	}
	s.assign(variables["collation_database"], varValue{s: c.Name()})
	s.assign(variables["character_set_database"], varValue{s: charsetOf(c)})
}

// setSQLMode puts an sql_mode in force.
func (s *Session) setSQLMode(mode uint64) {
	s.opt.sqlMode = mode
	s.mode = astMode(mode).WithClient(s.opt.client)
	s.x.Mode = conversionMode(mode)
	s.x.SQLMode = expressionMode(mode)
}

// userVar is a user variable.
type userVar struct {
	value types.Value
	typ   *types.Type
}

// Limits of user variables: a session cannot make a node hold any amount of memory.
const (
	maxUserVariables = 4096
	maxVariableName  = 64
)

func (s *Session) setUserVariable(name string, v types.Value, t *types.Type) error {
	return s.storeUserVariable(name, v, t, types.Value.Clone)
}

// keepUserVariable is setUserVariable of a value that nobody else has.
func (s *Session) keepUserVariable(name string, v types.Value, t *types.Type) error {
	return s.storeUserVariable(name, v, t, func(v types.Value) types.Value { return v })
}

func (s *Session) storeUserVariable(name string, v types.Value, t *types.Type, own func(types.Value) types.Value) error {
	name = foldName(name)
	if len(name) > 4*maxVariableName {
		return sqlerr.New(sqlerr.IllegalUserVar, name)
	}
	if s.user == nil {
		s.user = map[string]userVar{}
	}
	if _, ok := s.user[name]; !ok && len(s.user) >= maxUserVariables {
		return sqlerr.Newf(sqlerr.UnknownError, "Too many user variables (more than %d)", maxUserVariables)
	}
	if more := longBytes(v) - longBytes(s.user[name].value); more != 0 {
		if err := s.Hold(more); err != nil {
			return err
		}
	}
	s.user[strings.Clone(name)] = userVar{own(v), t} // the name is part of the statement's text
	if s.opt.trackState {
		s.change(ChangeState, "", "1")
	}
	return nil
}

// longBytes is what a user variable's value is accounted for, in bytes: the value of a long text.
func longBytes(v types.Value) int64 {
	if n := len(v.Bytes()); n > 1<<10 {
		return int64(n)
	}
	return 0
}

// forgetUserVariable unsets a user variable.
func (s *Session) forgetUserVariable(name string) {
	if n := longBytes(s.user[name].value); n != 0 {
		_ = s.Hold(-n) // what is given back is never refused
	}
	delete(s.user, name)
}

// UserVariables returns the text of all user variables by name.
func (s *Session) UserVariables() map[string]userVar { return maps.Clone(s.user) }
