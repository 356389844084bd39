package btree

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/mtr"
)

// TestScripts runs testdata: each command changes the tree or looks at it; after
// each the checkers must find nothing. Values are large, so that pages hold few
// entries.
//
//	put size=N [from=A to=B [step=S]] [keys...]   values of N bytes
//	del keys... | from=A to=B [step=S]            with the shrinking that purge does
//	load fill=F size=N from=A to=B                bulk load
//	tree                                          shape: bounds, prefix, keys
//	scan [from=K] | back [before=K]               keys through a cursor
//	disk size=N                                   limits the disk to what is used plus N bytes; 0: none
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		w := newWorld(t, env.Real(), 256, 8<<20)
		defer w.close()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w.t = t
			out := w.command(t, d)
			w.check()
			return out
		})
	})
}

func (w *world) command(t *testing.T, d *datadriven.TestData) string {
	a := w.self()
	size := 0
	d.MaybeScanArgs(t, "size", &size)
	value := strings.Repeat("v", size)
	switch d.Cmd {
	case "put":
		for _, k := range scriptKeys(t, d) {
			if err := a.put(k, 0, value); err != nil {
				return scriptError(err)
			}
		}
		return w.shape(false)
	case "del":
		for _, k := range scriptKeys(t, d) {
			if _, err := a.del(k); err != nil {
				return scriptError(err)
			}
		}
		return w.shape(false)
	case "load":
		fill := 0
		d.ScanArgs(t, "fill", &fill)
		l := w.tree.NewLoader(fill)
		for _, k := range scriptKeys(t, d) {
			w.must(l.Add([]byte(k), 0, []byte(value)))
		}
		w.must(l.Finish())
		return w.shape(false)
	case "tree":
		return w.shape(true)
	case "disk":
		if size == 0 {
			w.fs.SetCapacity(0)
			return ""
		}
		w.fs.SetCapacity(w.fs.Used() + int64(size))
		return ""
	case "scan", "back":
		return w.scanScript(t, d)
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return ""
}

func scriptError(err error) string {
	if errors.Is(err, file.ErrNoSpace) {
		return "error: no space\n"
	}
	return "error: " + err.Error() + "\n"
}

func scriptKeys(t *testing.T, d *datadriven.TestData) []string {
	var keys []string
	from, to, step := 0, -1, 1
	d.MaybeScanArgs(t, "from", &from)
	d.MaybeScanArgs(t, "to", &to)
	d.MaybeScanArgs(t, "step", &step)
	for i := from; to >= 0 && (i-to)*step <= 0; i += step {
		keys = append(keys, fmt.Sprintf("key%04d", i))
	}
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 {
			keys = append(keys, a.Key)
		}
	}
	return keys
}

// shape draws the tree; with all, every key.
func (w *world) shape(all bool) string {
	var b strings.Builder
	w.m.BeginRead()
	defer w.m.Commit()
	var draw func(no uint32, indent string)
	draw = func(no uint32, indent string) {
		p, err := w.m.Get(w.tree.id(no), mtr.S)
		w.must(err)
		n := nodeOf(p.Data)
		fmt.Fprintf(&b, "%slevel %d: %d entries, %d %% full", indent, n.level(), n.count(), n.used()*100/capacity)
		if n.prefixLen() > 0 {
			fmt.Fprintf(&b, ", prefix %s", n.prefix())
		}
		b.WriteByte('\n')
		for i := range n.count() {
			switch {
			case n.level() > 0:
				if i > 0 {
					fmt.Fprintf(&b, "%s  %s\n", indent, n.appendKey(nil, i))
				}
				draw(n.child(i), indent+"    ")
			case all:
				fmt.Fprintf(&b, "%s  %s\n", indent, n.appendKey(nil, i))
			}
		}
	}
	draw(w.tree.root.No, "")
	return b.String()
}

func (w *world) scanScript(t *testing.T, d *datadriven.TestData) string {
	var from, before string
	d.MaybeScanArgs(t, "from", &from)
	d.MaybeScanArgs(t, "before", &before)
	w.m.BeginRead()
	defer w.m.Commit()
	defer w.c.Reset()
	move := w.c.Next
	switch {
	case d.Cmd == "scan":
		_, err := w.c.Seek([]byte(from), mtr.S)
		w.must(err)
	case before != "":
		w.must(w.c.SeekBefore([]byte(before), mtr.S, false))
		move = w.c.Prev
	default:
		w.must(w.c.Last(mtr.S))
		move = w.c.Prev
	}
	var keys []string
	for w.c.Valid() {
		keys = append(keys, string(w.c.Key()))
		w.must(move())
	}
	return strings.Join(keys, " ") + "\n"
}
