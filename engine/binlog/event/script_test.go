package event

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// The bytes of events, as they are. Commands:
//
//	table id=N [image=noblob|full] [metadata=full]    columns, one a line: NAME TYPE [not null] [unsigned] [hidden] [key]
//	change                                            insert V,… | delete V,… | update V,… to V,…, one a line; ends a statement
//	export                                            what a Writer makes of the changes since the last export
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		var s script
		datadriven.RunTest(t, path, s.run)
	})
}

type script struct {
	layout *Layout
	log    []byte
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	switch d.Cmd {
	case "table":
		s.layout = newLayout(t, parseTable(t, d), scriptOptions(d))
		dumpEvents(&out, s.layout.AppendTableMap(nil, 1))
	case "change":
		events, err := s.change(t, d.Input)
		if err != nil {
			return err.Error() + "\n"
		}
		s.log = append(s.log, events...)
		r := NewReader(events)
		var e Event
		if _, err := r.Next(&e); err != nil || !s.layout.Matches(&e) {
			t.Fatalf("%s: no table map", d.Pos)
		}
		dumpEvents(&out, r.rest)
	case "export":
		var file bytes.Buffer
		w := NewWriter(&file, WriterOptions{UUID: UUID{0xaa}, ServerID: 1, NoChecksum: d.HasArg("nochecksum")})
		check(t, w.Begin(1, GTIDSet{{UUID: UUID{0xaa}, First: 1, Last: 9}}))
		check(t, w.Transaction(&Transaction{Number: 10, LastCommitted: 0, Sequence: 1, Time: 2_000_003, Events: s.log}))
		check(t, w.Rotate(3, "binlog.000002"))
		if w.Position() != uint64(file.Len()) {
			t.Fatalf("position %d of %d bytes", w.Position(), file.Len())
		}
		s.log = nil
		dumpEvents(&out, file.Bytes()[len(Magic):])
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return out.String()
}

func scriptOptions(d *datadriven.TestData) (opt Options) {
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "image":
			opt.Image, _ = ParseRowImage(arg.Vals[0])
		case "metadata":
			opt.FullMetadata = arg.Vals[0] == "full"
		}
	}
	return opt
}

func parseTable(t *testing.T, d *datadriven.TestData) *record.Table {
	var id uint64
	d.ScanArgs(t, "id", &id)
	var columns []record.Column
	var key []string
	for _, line := range strings.Split(d.Input, "\n") {
		name, rest, _ := strings.Cut(line, " ")
		word, attributes, _ := strings.Cut(rest, " ")
		c := record.Column{Name: name, Type: parseType(t, word), Hidden: strings.Contains(attributes, "hidden")}
		c.Type.NotNull = strings.Contains(attributes, "not null")
		c.Type.Unsigned = strings.Contains(attributes, "unsigned")
		if strings.Contains(attributes, "key") {
			key = append(key, name)
		}
		columns = append(columns, c)
	}
	return tableOf(id, columns, key...)
}

func parseType(t *testing.T, s string) types.Type {
	name, args, _ := strings.Cut(strings.TrimSuffix(s, ")"), "(")
	var n, m int
	_, _ = fmt.Sscanf(args, "%d,%d", &n, &m)
	for k := types.KindTinyInt; k <= types.KindJSON; k++ {
		if k.String() != name {
			continue
		}
		ty := types.Type{Kind: k}
		switch {
		case k == types.KindDecimal:
			ty.Precision, ty.Scale = uint8(n), uint8(m)
		case ty.IsTemporal():
			ty.FSP = uint8(n)
		case k == types.KindEnum || k == types.KindSet:
			ty.Members, ty.Collation = strings.Split(args, ","), types.CollationLatin1Swedish
		case ty.IsText():
			ty.Length, ty.Collation = uint32(n), types.CollationUTF8MB40900AI
		case ty.IsBlob() || k == types.KindJSON:
			ty.Length, ty.Collation = uint32(n), types.CollationBinary
		default:
			ty.Length = uint32(n)
		}
		if ty.IsLong() {
			ty.Length = 0
		}
		return ty
	}
	t.Fatalf("no type %s", s)
	return types.Type{}
}

func (s *script) change(t *testing.T, input string) ([]byte, error) {
	var out bytes.Buffer
	var r Rows
	r.Reset(&out)
	r.Begin(1)
	for _, line := range strings.Split(input, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		before, after, _ := strings.Cut(rest, " to ")
		row := s.row(t, before)
		var err error
		switch word {
		case "insert":
			err = r.Insert(s.layout, row)
		case "delete":
			err = r.Delete(s.layout, row)
		case "update":
			var changes []record.Change
			for i, v := range s.row(t, after) {
				if !Identical(row[i], v) {
					changes = append(changes, record.Change{Column: i, Value: v})
				}
			}
			err = r.Update(s.layout, row, changes)
		}
		if err != nil {
			return nil, err
		}
	}
	err := r.End()
	return out.Bytes(), err
}

// row reads values by column position.
func (s *script) row(t *testing.T, text string) []types.Value {
	var c types.Context
	def := s.layout.Table()
	row := make([]types.Value, len(def.Columns))
	for i, word := range strings.Split(text, ",") {
		if word == "NULL" {
			continue
		}
		v, err := c.Store(types.NewString(strings.ReplaceAll(word, ";", ",")), nil, &def.Columns[i].Type)
		check(t, err)
		row[i] = v.Clone()
	}
	return row
}

// dumpEvents prints events with their bodies in hex, text where there is text.
func dumpEvents(out *strings.Builder, events []byte) {
	r := NewReader(events)
	var e Event
	for {
		more, err := r.Next(&e)
		if err != nil {
			fmt.Fprintln(out, err)
		}
		if !more || err != nil {
			return
		}
		fmt.Fprintf(out, "%v time=%d server=%d length=%d pos=%d flags=%#x\n", e.Type, e.Timestamp, e.ServerID, e.Length, e.LogPos, e.Flags)
		for b := e.Body; len(b) > 0; {
			n := min(len(b), 24)
			text := bytes.Map(func(c rune) rune {
				if c < ' ' || c > '~' {
					return '.'
				}
				return c
			}, []byte(latin1(b[:n])))
			fmt.Fprintf(out, "  %-48s %s\n", hex.EncodeToString(b[:n]), text)
			b = b[n:]
		}
	}
}

func latin1(b []byte) string {
	r := make([]rune, len(b))
	for i, c := range b {
		r[i] = rune(c)
	}
	return string(r)
}
