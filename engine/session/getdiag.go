package session

import (
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// diagText is the type of the texts that GET DIAGNOSTICS gives: MySQL's are utf8mb3_general_ci.
var diagText = &types.Type{Kind: types.KindVarChar, Length: 128, Collation: types.CollationUTF8MB4Gen}

// runGetDiagnostics is GET DIAGNOSTICS, which leaves the conditions as they are. A condition that there is not is one more of them, and
// no error of the statement, as in MySQL.
func (s *Session) runGetDiagnostics(st *ast.GetDiagnostics) (Outcome, error) {
	if st.Stacked {
		return Outcome{}, sqlerr.New(sqlerr.GetStackedDAWithoutActiveHandler)
	}
	s.work.keepsCount = true
	var c *Condition
	if st.Condition != nil {
		v, t, err := s.evaluate(st.Condition)
		if err != nil {
			return Outcome{}, err
		}
		n, ok := s.wholeNumber(v, t)
		if !ok || n < 1 || n > uint64(len(s.diag.list)) {
			s.diag.fail(sqlerr.New(sqlerr.DAInvalidConditionNumber))
			s.rowCount = -1
			return Outcome{Warnings: 1}, nil
		}
		c = &s.diag.list[n-1]
	}
	for _, x := range st.Items {
		v, t := s.statementItem(x.Item), bigintType
		if c != nil {
			v, t = c.item(x.Item)
		}
		if err := s.keepUserVariable(x.Var, v, t); err != nil {
			return Outcome{}, err
		}
	}
	return Outcome{}, nil
}

// wholeNumber is a value as a number from 0 on; not ok: it is none, NULL for example.
func (s *Session) wholeNumber(v types.Value, t *types.Type) (n uint64, ok bool) {
	if v.IsNull() {
		return 0, false
	}
	quiet := types.Context{Warn: func(*sqlerr.Error) {}}
	v, err := quiet.Store(v, t, unsignedType)
	return v.Uint(), err == nil
}

// statementItem is an item of the statement's information.
func (s *Session) statementItem(item string) types.Value {
	if item == "ROW_COUNT" {
		return types.NewInt(s.rowCount)
	}
	return types.NewInt(int64(len(s.diag.list)))
}

// item is an item of a condition's information.
func (c *Condition) item(item string) (types.Value, *types.Type) {
	text := ""
	switch item {
	case "MYSQL_ERRNO":
		return types.NewInt(int64(c.Error.Number)), bigintType
	case "MESSAGE_TEXT":
		text = c.Error.Message
	case "RETURNED_SQLSTATE":
		text = c.Error.State
	case "CLASS_ORIGIN", "SUBCLASS_ORIGIN":
		text = c.items[item]
		if c.items == nil {
			text = originOf(c.Error.State)
		}
	default:
		text = c.items[item]
	}
	return types.NewString(text), diagText
}

// originOf tells who has defined a class of SQLSTATEs: those that begin with 0 to 4 or A to H are the standard's.
func originOf(state string) string {
	if state[0] >= '0' && state[0] <= '4' || state[0] >= 'A' && state[0] <= 'H' {
		return "ISO 9075"
	}
	return "MySQL"
}

// Limits of the items of a condition, in characters, and the number's.
const (
	maxMessageText   = 128
	maxConditionItem = 64
	maxErrorNumber   = 65535
)

// runSignal is SIGNAL and RESIGNAL. There are no handlers that RESIGNAL could stand in.
func (s *Session) runSignal(st *ast.Signal) error {
	if st.Resignal {
		return sqlerr.New(sqlerr.ResignalWithoutActiveHandler)
	}
	number := sqlerr.SignalException
	switch st.State[:2] {
	case "01":
		number = sqlerr.SignalWarn
	case "02":
		number = sqlerr.SignalNotFound
	}
	e := sqlerr.New(number)
	e.State = strings.Clone(st.State)
	items := map[string]string{}
	for i := range st.Items {
		x := &st.Items[i]
		v, t, err := s.evaluate(x.Value)
		if err != nil {
			return err
		}
		text := "NULL"
		if !v.IsNull() {
			text = string(types.AppendText(nil, v, t, s.x.Location))
		}
		refused := sqlerr.New(sqlerr.WrongValueForVar, x.Name, text)
		if v.IsNull() {
			return refused
		}
		switch x.Name {
		case "MYSQL_ERRNO":
			n, ok := s.wholeNumber(v, t)
			if !ok || n == 0 || n > maxErrorNumber {
				return refused
			}
			e.Number = sqlerr.Code(n)
		case "MESSAGE_TEXT":
			if e.Message, err = s.conditionText(x.Name, text, maxMessageText); err != nil {
				return err
			}
		default:
			if items[x.Name], err = s.conditionText(x.Name, text, maxConditionItem); err != nil {
				return err
			}
		}
	}
	s.diag.raising = items
	if st.State[:2] == "01" {
		s.diag.warn(e)
		return nil
	}
	return e
}

// conditionText cuts a text that is too long for an item: with a warning, or where sql_mode is strict an error.
func (s *Session) conditionText(item, text string, limit int) (string, error) {
	cut := len(types.CharsetUTF8MB4.Prefix([]byte(text), limit))
	if cut == len(text) {
		return text, nil
	}
	if s.x.Mode&types.ModeStrict != 0 {
		return "", sqlerr.New(sqlerr.CondItemTooLong, item)
	}
	s.diag.warn(sqlerr.New(sqlerr.WarnCondItemTruncated, item))
	return text[:cut], nil
}
