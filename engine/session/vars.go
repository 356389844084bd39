package session

import (
	"slices"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// varKind is the type of a system variable.
type varKind uint8

const (
	varBool varKind = iota
	varInt
	varUint
	varDouble
	varEnum   // one of names; n is its position
	varSet    // a set of names; n is its bits
	varString // n is 1 for NULL
)

// varScope says where a system variable has values and who may set it.
type varScope uint16

const (
	inGlobal   varScope = 1 << iota // has a global value
	inSession                       // has a value for each session
	readOnly                        // cannot be set: error 1238
	inGroup                         // the global value is a setting of the group
	fixedTo                         // may be "set" to its value only: other ones are unsafe or not built
	inert                           // may be set, which means nothing: so SET says
	atStart                         // read-only to SET; a setting of the node gives it its value
	nullable                        // of strings
	sessionRO                       // the session's value cannot be set
	anyBacking = inGlobal | inSession
	both       = inGlobal | inSession
)

// varValue is the value of a system variable.
type varValue struct {
	n uint64 // number, bits of a float, position, set; 1 for a string that is NULL
	s string // of varString
}

// variable is a system variable. They are declared in varlist.go and varlist2.go.
type variable struct {
	name      string
	kind      varKind
	scope     varScope
	def       varValue
	min, max  uint64 // as int64 for varInt, as bits for varDouble
	block     uint64 // values are multiples of it
	names     []string
	slot      int
	alias     *variable               // that has the value of both
	guarded   bool                    // a session's value above the global one takes a privilege
	unknown   func(name string) error // refuses what there is not, instead of error 1231
	flags     bool                    // the value is flag=on|off, .., of which SET gives some
	privilege string                  // that it takes to see or set it; empty: to see it none

	// get computes the value instead of keeping it.
	get func(s *Session, global bool) varValue
	// check looks at a value before it is set, and may change it.
	check func(s *Session, v *varValue) error
	// applied is called when the session's value has changed, and for each session when it begins.
	applied func(s *Session, v varValue)
	// appliedGlobal is called when the global value has changed.
	appliedGlobal func(m *Manager, v varValue)
}

// variables are all of them by name; varSlots by slot.
var (
	variables = map[string]*variable{}
	varSlots  []*variable
)

func init() {
	for _, list := range [][]*variable{serverVariables(), engineVariables(), auditVariables()} {
		for _, v := range list {
			if variables[v.name] != nil {
				panic("session: variable " + v.name + " is declared twice")
			}
			v.slot = len(varSlots)
			varSlots = append(varSlots, v)
			variables[v.name] = v
		}
	}
	for name, to := range aliases {
		variables[name].alias = variables[to]
	}
	varAutoIncrement, varAutoOffset = variables["auto_increment_increment"], variables["auto_increment_offset"]
	varOnlineLog = variables["innodb_online_alter_log_max_size"]
	varUserConnections = variables["max_user_connections"]
	varMaxExecution, varLockWait, varRowLockWait = variables["max_execution_time"], variables["lock_wait_timeout"], variables["innodb_lock_wait_timeout"]
	varReadLockLimit, varReadPort = variables["trireme_read_lock_limit"], variables["trireme_read_port_consistency"]
	varInnoDBOnly = variables["trireme_innodb_only"]
	varStrictOptions, varRequireKey = variables["innodb_strict_mode"], variables["sql_require_primary_key"]
	varDeadlocks = variables["innodb_print_all_deadlocks"]
	varPasswordLifetime, varRequireCurrent = variables["default_password_lifetime"], variables["password_require_current"]
	varPasswordHistory, varPasswordReuse = variables["password_history"], variables["password_reuse_interval"]
	varRandomLength, varPolicy = variables["generated_random_password_length"], variables["validate_password.policy"]
	varPolicyLength, varPolicyUserName = variables["validate_password.length"], variables["validate_password.check_user_name"]
	varPolicyMixed, varPolicyNumbers = variables["validate_password.mixed_case_count"], variables["validate_password.number_count"]
	varPolicySpecial = variables["validate_password.special_char_count"]
	varMandatory, varPartial = variables["mandatory_roles"], variables["partial_revokes"]
	varRecursion, varSlowLog = variables["cte_max_recursion_depth"], variables["slow_query_log"]
}

// Those that statements look at often.
var varAutoIncrement, varAutoOffset, varMaxExecution, varLockWait, varReadLockLimit, varReadPort, varInnoDBOnly, varRowLockWait, varRecursion, varOnlineLog, varSlowLog, varUserConnections,
	varStrictOptions, varRequireKey, varDeadlocks, varMandatory, varPartial *variable

// Those of passwords.
var varPasswordLifetime, varRequireCurrent, varPasswordHistory, varPasswordReuse, varRandomLength, varPolicy, varPolicyLength, varPolicyUserName,
	varPolicyMixed, varPolicyNumbers, varPolicySpecial *variable

// findVariable returns the variable of a name. Error: 1193.
func findVariable(name string) (*variable, error) {
	if v := variables[name]; v != nil {
		return v, nil
	}
	if v := variables[strings.ToLower(name)]; v != nil {
		return v, nil
	}
	return nil, sqlerr.New(sqlerr.UnknownSystemVariable, name)
}

// sqlType is the type of the variable in SELECT @@name.
func (v *variable) sqlType() *types.Type {
	switch v.kind {
	case varBool, varInt:
		return bigintType
	case varUint:
		return unsignedType
	case varDouble:
		return doubleType
	}
	return textType
}

var (
	bigintType   = &types.Type{Kind: types.KindBigInt, Length: 21}
	unsignedType = &types.Type{Kind: types.KindBigInt, Unsigned: true, Length: 21}
	doubleType   = &types.Type{Kind: types.KindDouble}
	textType     = &types.Type{Kind: types.KindVarChar, Length: 1024, Collation: types.CollationUTF8MB40900AI}
)

// value is what SELECT @@name gives.
func (v *variable) value(x varValue) types.Value {
	switch v.kind {
	case varBool, varInt:
		return types.NewInt(int64(x.n))
	case varUint:
		return types.NewUint(x.n)
	case varDouble:
		return types.NewDouble(floatOf(x.n))
	}
	if v.kind == varString && x.n == 1 {
		return types.Null
	}
	return types.NewString(v.text(x))
}

// text is what SHOW VARIABLES gives.
func (v *variable) text(x varValue) string {
	switch v.kind {
	case varBool:
		if x.n != 0 {
			return "ON"
		}
		return "OFF"
	case varInt:
		return strconv.FormatInt(int64(x.n), 10)
	case varUint:
		return strconv.FormatUint(x.n, 10)
	case varDouble:
		return strconv.FormatFloat(floatOf(x.n), 'f', 6, 64)
	case varEnum:
		if x.n < uint64(len(v.names)) {
			return v.names[x.n]
		}
		return ""
	case varSet:
		var parts []string
		for i, name := range v.names {
			if x.n&(1<<i) != 0 {
				parts = append(parts, name)
			}
		}
		return strings.Join(parts, ",")
	}
	return x.s
}

// wrongValue is error 1231.
func (v *variable) wrongValue(text string) error {
	return sqlerr.New(sqlerr.WrongValueForVar, v.name, text)
}

// wrongType is error 1232.
func (v *variable) wrongType() error {
	return sqlerr.New(sqlerr.WrongTypeForVar, v.name)
}

// convert turns a value of an expression, not NULL, into the variable's. warn receives
// 1292 for a number that was cut to the limits.
func (v *variable) convert(x types.Value, warn func(*sqlerr.Error)) (varValue, error) {
	switch v.kind {
	case varBool, varEnum:
		return v.convertName(x)
	case varSet:
		return v.convertSet(x)
	case varInt, varUint:
		return v.convertNumber(x, warn)
	case varDouble:
		return v.convertDouble(x, warn)
	}
	if x.Class() != types.ClassBytes {
		return varValue{}, v.wrongType()
	}
	return varValue{s: string(x.Bytes())}, nil
}

// integerOf gives an integer value by sign and magnitude.
func integerOf(x types.Value) (neg bool, n uint64, ok bool) {
	switch x.Class() {
	case types.ClassInt:
		if i := x.Int(); i < 0 {
			return true, uint64(-i), true
		}
		return false, uint64(x.Int()), true
	case types.ClassUint:
		return false, x.Uint(), true
	}
	return false, 0, false
}

var boolNames = []string{"OFF", "ON", "FALSE", "TRUE"}

func (v *variable) convertName(x types.Value) (varValue, error) {
	names := v.names
	if v.kind == varBool {
		names = boolNames
	}
	if neg, n, ok := integerOf(x); ok {
		if v.unknown != nil {
			return varValue{}, v.wrongType()
		}
		limit := len(names)
		if v.kind == varBool {
			limit = 2
		}
		if neg || n >= uint64(limit) {
			return varValue{}, v.wrongValue(valueText(x))
		}
		return varValue{n: n}, nil
	}
	if x.Class() != types.ClassBytes {
		return varValue{}, v.wrongType()
	}
	for i, name := range names {
		if strings.EqualFold(name, string(x.Bytes())) {
			if v.kind == varBool {
				i &= 1
			}
			return varValue{n: uint64(i)}, nil
		}
	}
	if v.unknown != nil {
		return varValue{}, v.unknown(string(x.Bytes()))
	}
	return varValue{}, v.wrongValue(string(x.Bytes()))
}

func (v *variable) convertSet(x types.Value) (varValue, error) {
	if neg, n, ok := integerOf(x); ok {
		if neg || n>>len(v.names) != 0 {
			return varValue{}, v.wrongValue(valueText(x))
		}
		return varValue{n: n}, nil
	}
	if x.Class() != types.ClassBytes {
		return varValue{}, v.wrongType()
	}
	var bits uint64
next:
	for _, part := range strings.Split(string(x.Bytes()), ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		for i, name := range v.names {
			if strings.EqualFold(name, part) {
				bits |= 1 << i
				continue next
			}
		}
		return varValue{}, v.wrongValue(part)
	}
	return varValue{n: bits}, nil
}

func (v *variable) convertNumber(x types.Value, warn func(*sqlerr.Error)) (varValue, error) {
	neg, n, ok := integerOf(x)
	if !ok {
		return varValue{}, v.wrongType()
	}
	cut := false
	if v.kind == varUint {
		switch {
		case neg:
			n, cut = v.min, true
		case n < v.min:
			n, cut = v.min, true
		case n > v.max:
			n, cut = v.max, true
		}
	} else {
		i := int64(n)
		switch {
		case neg:
			i = -int64(n)
		case n > 1<<63-1:
			i, cut = int64(v.max), true
		}
		if i < int64(v.min) {
			i, cut = int64(v.min), true
		} else if i > int64(v.max) {
			i, cut = int64(v.max), true
		}
		n = uint64(i)
	}
	if v.block > 1 && n%v.block != 0 {
		n, cut = n-n%v.block, true
	}
	if cut && warn != nil {
		warn(truncatedValue(v.name, x))
	}
	return varValue{n: n}, nil
}

func truncatedValue(name string, x types.Value) *sqlerr.Error {
	return sqlerr.New(sqlerr.TruncatedWrongValue, name, valueText(x))
}

func (v *variable) convertDouble(x types.Value, warn func(*sqlerr.Error)) (varValue, error) {
	var f float64
	switch x.Class() {
	case types.ClassInt:
		f = float64(x.Int())
	case types.ClassUint:
		f = float64(x.Uint())
	case types.ClassDouble:
		f = x.Double()
	case types.ClassFloat:
		f = float64(x.Float())
	case types.ClassDecimal:
		f, _ = strconv.ParseFloat(valueText(x), 64)
	default:
		return varValue{}, v.wrongType()
	}
	if g := min(max(f, floatOf(v.min)), floatOf(v.max)); g != f {
		if f = g; warn != nil {
			warn(truncatedValue(v.name, x))
		}
	}
	return varValue{n: floatBits(f)}, nil
}

// mergeFlags changes flags in a list of all: what a value of the kind flag=on|off|default, .. says. Error: 1231.
func (v *variable) mergeFlags(list, changes string) (string, error) {
	all, set := strings.Split(list, ","), map[string]bool{}
	for _, change := range strings.Split(changes, ",") {
		change = strings.ToLower(strings.TrimSpace(change))
		if change == "default" && !set[change] {
			all = strings.Split(v.def.s, ",")
			continue
		}
		name, value, _ := strings.Cut(change, "=")
		at := slices.IndexFunc(all, func(f string) bool { return strings.HasPrefix(f, name+"=") })
		switch {
		case change == "":
			continue
		case at < 0 || set[name]:
			return "", v.wrongValue(change)
		case value == "default":
			all[at] = strings.Split(v.def.s, ",")[at]
		case value == "on" || value == "off":
			all[at] = change
		default:
			return "", v.wrongValue(change)
		}
		set[name] = true
	}
	return strings.Join(all, ","), nil
}

// startsWith checks a value that the configuration gives: it may be what SET GLOBAL takes, or the setting of a node that
// cannot be changed later. Errors: 1228, 1231, 1238.
func (v *variable) startsWith(x varValue) error {
	switch {
	case v.scope&atStart != 0 || x == v.def:
		return nil
	case v.scope&inGlobal == 0:
		return maySet(v, ast.ScopeGlobal)
	case v.scope&fixedTo != 0:
		return fixedError(v, x)
	case v.scope&readOnly != 0:
		return sqlerr.New(sqlerr.IncorrectGlobalLocalVar, v.name, "read only")
	case v.scope&inert == 0 && (v.get != nil || v.scope&inGroup != 0):
		return sqlerr.Newf(sqlerr.IncorrectGlobalLocalVar, "Variable '%s' cannot be configured, only changed by SET "+
			"GLOBAL", v.name)
	}
	return nil
}

// parse reads a value as an option file has it: numbers may end in K, M or G.
func (v *variable) parse(text string) (varValue, error) {
	switch v.kind {
	case varInt, varUint, varDouble:
		number, unit := text, uint64(1)
		if n := len(text); n > 1 {
			switch text[n-1] {
			case 'k', 'K':
				number, unit = text[:n-1], 1<<10
			case 'm', 'M':
				number, unit = text[:n-1], 1<<20
			case 'g', 'G':
				number, unit = text[:n-1], 1<<30
			}
		}
		if i, err := strconv.ParseInt(number, 10, 64); err == nil {
			return v.convert(types.NewInt(i*int64(unit)), nil)
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || v.kind != varDouble {
			return varValue{}, v.wrongType()
		}
		return v.convert(types.NewDouble(f), nil)
	case varBool, varEnum:
		if i, err := strconv.ParseUint(text, 10, 64); err == nil {
			return v.convert(types.NewUint(i), nil)
		}
	}
	return v.convert(types.NewString(text), nil)
}
