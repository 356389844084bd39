package ast

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

var modes = map[string]Mode{
	"ansi_quotes": ModeANSIQuotes, "no_backslash_escapes": ModeNoBackslashEscapes, "pipes_as_concat": ModePipesAsConcat,
	"ignore_space": ModeIgnoreSpace, "high_not_precedence": ModeHighNotPrecedence, "real_as_float": ModeRealAsFloat,
}

// TestScripts runs testdata/*: `sql` shows each statement's canonical text or error,
// and checks that the canonical text means the same; `names` shows the names of the
// select items; `near` shows errors with their whole message.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var mode Mode
			for _, a := range d.CmdArgs {
				m, ok := modes[a.Key]
				if !ok {
					d.Fatalf(t, "unknown mode %s", a.Key)
				}
				mode |= m
			}
			var out strings.Builder
			for _, text := range strings.Split(strings.TrimSuffix(d.Input, "\n"), "\n--\n") {
				switch d.Cmd {
				case "sql":
					showFormat(t, &out, text, mode)
				case "names":
					showNames(&out, text, mode)
				case "near":
					_, err := Parse(text, mode)
					fmt.Fprintln(&out, err)
				default:
					d.Fatalf(t, "unknown command %s", d.Cmd)
				}
			}
			return out.String()
		})
	})
}

func showFormat(t *testing.T, out *strings.Builder, text string, mode Mode) {
	list, err := Parse(text, mode)
	for _, s := range list {
		formatted := Format(s)
		fmt.Fprintln(out, formatted)
		if err := roundTrip(s, formatted); err != nil {
			t.Errorf("%s\n%v", text, err)
		}
	}
	if err != nil {
		fmt.Fprintln(out, short(err))
	}
}

func short(err error) string {
	var e *sqlerr.Error
	if !errors.As(err, &e) {
		return "NOT AN SQL ERROR: " + err.Error()
	}
	message := e.Message
	if i := strings.Index(message, "near '"); i >= 0 {
		message = message[i:]
	}
	return fmt.Sprintf("error %d (%s): %s", e.Number, e.State, message)
}

// roundTrip checks that the canonical text of a statement gives the same statement.
func roundTrip(s Statement, formatted string) error {
	again, err := Parse(formatted, 0)
	if err != nil {
		return fmt.Errorf("canonical text does not parse: %v\n%s", err, formatted)
	}
	if len(again) != 1 {
		return fmt.Errorf("canonical text has %d statements: %s", len(again), formatted)
	}
	strip(reflect.ValueOf(s))
	strip(reflect.ValueOf(again[0]))
	if a, b := dump(s), dump(again[0]); a != b || s.Params() != again[0].Params() {
		return fmt.Errorf("canonical text means something else:\n%s\n%s\n%s", formatted, a, b)
	}
	return nil
}

// strip gives select items their names as alias, and literals the text of their value.
func strip(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return
		}
		if l, ok := v.Interface().(*Literal); ok {
			l.Value = types.NewString(fmt.Sprintf("%v", valueText(l)))
			return
		}
		strip(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			strip(v.Index(i))
		}
	case reflect.Struct:
		if v.CanAddr() {
			if p, ok := v.Addr().Interface().(*SelectItem); ok {
				if _, ok := p.Expr.(*ColumnRef); !p.Star && !ok && p.Alias == "" {
					p.Alias = p.Text
				}
				p.Text = ""
			}
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				strip(v.Field(i))
			}
		}
	}
}

func valueText(l *Literal) string {
	if l.Kind == LiteralString || l.Kind == LiteralHex || l.Kind == LiteralBit {
		return string(l.Value.Bytes())
	}
	return Format(l)
}

func dump(n any) string { return dumpValue(reflect.ValueOf(n), 0) }

func dumpValue(v reflect.Value, depth int) string {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return "nil"
		}
		if l, ok := v.Interface().(*Literal); ok {
			return fmt.Sprintf("Literal{%d %q %v %q}", l.Kind, l.Value.Bytes(), *l.Type, l.Charset)
		}
		return dumpValue(v.Elem(), depth)
	case reflect.Slice:
		if v.IsNil() {
			return "nil"
		}
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = dumpValue(v.Index(i), depth+1)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.Struct:
		var parts []string
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !v.Field(i).IsZero() {
				parts = append(parts, f.Name+":"+dumpValue(v.Field(i), depth+1))
			}
		}
		return v.Type().Name() + "{" + strings.Join(parts, " ") + "}"
	}
	return fmt.Sprint(v)
}

// showNames shows the result columns' names of the outermost select.
func showNames(out *strings.Builder, text string, mode Mode) {
	list, err := Parse(text, mode)
	if err != nil {
		fmt.Fprintln(out, short(err))
	}
	for _, s := range list {
		if e, ok := s.(*Explain); ok {
			s = e.Statement
		}
		for {
			op, ok := s.(*SetOp)
			if !ok {
				break
			}
			s = op.Left
		}
		q, ok := s.(*Select)
		if !ok {
			continue
		}
		if d, ok := q.From.(*Derived); ok {
			q = d.Query.(*Select)
		}
		for i := range q.Items {
			fmt.Fprintf(out, "%s | ", q.Items[i].Name())
		}
		fmt.Fprintln(out)
	}
}
