package history

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// read makes a history of lines such as "T1 ok 0-5 a1:2 r1:[1,2] l1:[]": append, read and
// read with locks. The last line, "end 1:[1,2]", has the lists.
func read(t *testing.T, text string) (txns []*Txn, final map[int][]int) {
	t.Helper()
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	list := func(s string) (out []int) {
		for v := range strings.SplitSeq(strings.Trim(s, "[]"), ",") {
			if v != "" {
				out = append(out, number(v))
			}
		}
		return out
	}
	final = map[int][]int{}
	for line := range strings.SplitSeq(text, ";") {
		f := strings.Fields(line)
		if f[0] == "end" {
			for _, l := range f[1:] {
				key, values, _ := strings.Cut(l, ":")
				final[number(key)] = list(values)
			}
			continue
		}
		x := &Txn{Name: f[0]}
		x.Outcome, x.Stale = map[string]Outcome{"ok": Committed, "stale": Committed, "no": Aborted, "?": Unknown}[f[1]], f[1] == "stale"
		begin, end, _ := strings.Cut(f[2], "-")
		x.Begin, x.End = int64(number(begin)), int64(number(end))
		for _, o := range f[3:] {
			key, what, _ := strings.Cut(o[1:], ":")
			op := Op{Key: number(key), Append: o[0] == 'a', Locked: o[0] == 'l'}
			if op.Append {
				op.Value = number(what)
			} else {
				op.Read = list(what)
			}
			x.Ops = append(x.Ops, op)
		}
		txns = append(txns, x)
	}
	return txns, final
}

// Histories with an anomaly each, and what either level says.
func TestCheck(t *testing.T) {
	for _, test := range []struct{ name, text, serializable, repeatable string }{
		{"nothing", "T1 ok 0-1 a1:1; T2 ok 2-3 r1:[1] a1:2 r1:[1,2]; end 1:[1,2]", "", ""},
		{"overlapping", "T1 ok 0-9 a1:1; T2 ok 0-9 r1:[]; T3 ok 0-9 r1:[1]; end 1:[1]", "", ""},
		{"unknown, there", "T1 ? 0-1 a1:1; T2 ok 2-3 r1:[1]; end 1:[1]", "", ""},
		{"unknown, not there", "T1 ? 0-1 a1:1; T2 ok 2-3 r1:[]; end 1:[]", "", ""},
		{"unknown, there in part", "T1 ? 0-1 a1:1 a2:2; end 1:[1] 2:[]", "torn", "torn"},
		{"unknown, not there, read before", "T1 ok 0-1 a1:1; T2 ? 2-3 r1:[] a1:2; end 1:[1]", "", ""},
		{"unknown, late", "T1 ? 0-1 a1:1; T2 ok 2-3 r1:[]; T3 ok 4-5 r1:[1]; end 1:[1]", "", ""},
		{"rolled back", "T1 no 0-1 a1:1; T2 ok 2-3 r1:[]; end 1:[]", "", ""},
		{"lost", "T1 ok 0-1 a1:1; end 1:[]", "lost", "lost"},
		{"twice", "T1 ok 0-1 a1:1; end 1:[1,1]", "duplicate", "duplicate"},
		{"of nobody", "T1 ok 0-1 a1:1; end 1:[1,7]", "phantom", "phantom"},
		{"G1a", "T1 no 0-9 a1:1; T2 ok 0-9 r1:[1]; end 1:[1]", "G1a", "G1a"},
		{"G1b", "T1 ok 0-9 a1:1 a1:2; T2 ok 0-9 r1:[1]; end 1:[1,2]", "G1b", "G1b"},
		{"a branch", "T1 ok 0-9 a1:1; T2 ok 0-9 a1:2; T3 ok 0-9 r1:[2]; end 1:[1,2]", "order", "order"},
		{"G0", "T1 ok 0-9 a1:1 a2:1; T2 ok 0-9 a1:2 a2:2; end 1:[1,2] 2:[2,1]", "G0", "G0"},
		{"G1c", "T1 ok 0-9 a1:1 r2:[1]; T2 ok 0-9 a2:1 r1:[1]; end 1:[1] 2:[1]", "G1c", "G1c"},
		{"G-single of two reads", "T1 ok 0-9 a1:1 a2:1; T2 ok 0-9 r1:[] r2:[1]; end 1:[1] 2:[1]", "G-single", "G-single"},
		{"G-single through another", "T1 ok 0-9 a1:1; T2 ok 0-9 r1:[1] a2:1; T3 ok 0-9 r2:[1] r1:[]; end 1:[1] 2:[1]", "G-single", "G-single"},
		{"a snapshot written onto", "T1 ok 0-9 r1:[] a1:2; T2 ok 0-9 r1:[] a1:1; end 1:[1,2]", "G-single", ""},
		{"with locks written onto", "T1 ok 0-9 l1:[] a1:2; T2 ok 0-9 l1:[] a1:1; end 1:[1,2]", "G-single", "G-single"},
		{"write skew", "T1 ok 0-9 r1:[] a2:1; T2 ok 0-9 r2:[] a1:1; end 1:[1] 2:[1]", "G2", ""},
		{"write skew with locks", "T1 ok 0-9 l1:[] a2:1; T2 ok 0-9 l2:[] a1:1; end 1:[1] 2:[1]", "G2", "G2"},
		{"a stale read", "T1 ok 0-1 a1:1; T2 ok 2-3 r1:[]; end 1:[1]", "G-single-realtime", "G-single-realtime"},
		{"a stale read where that may be", "T1 ok 0-1 a1:1; T2 stale 2-3 r1:[]; end 1:[1]", "", ""},
		{"a torn read there", "T1 ok 0-1 a1:1 a2:1; T2 stale 2-3 r1:[] r2:[1]; end 1:[1] 2:[1]", "G-single", "G-single"},
		{"appends against time", "T1 ok 0-1 a1:1; T2 ok 2-3 a1:2; end 1:[2,1]", "G0-realtime", "G0-realtime"},
		{"against time, two between", "T1 ok 0-1 a1:1; T2 ok 2-3 a2:1; T3 ok 4-5 a3:1; T4 ok 6-7 r1:[]; end 1:[1] 2:[1] 3:[1]",
			"G-single-realtime", "G-single-realtime"},
		{"not repeatable", "T1 ok 0-9 r1:[] r1:[1]; T2 ok 0-9 a1:1; end 1:[1]", "internal", "internal"},
		{"an own append unseen", "T1 ok 0-9 a1:1 r1:[]; end 1:[1]", "internal", "internal"},
		{"others' before an own append", "T1 ok 0-9 r1:[] a1:2 r1:[1,2]; T2 ok 0-9 a1:1; end 1:[1,2]", "internal", ""},
		{"newer with locks", "T1 ok 0-9 r1:[] l1:[1] r1:[]; T2 ok 0-9 a1:1; end 1:[1]", "internal", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			txns, final := read(t, test.text)
			for level, want := range map[Level]string{Serializable: test.serializable, RepeatableRead: test.repeatable} {
				found := Check(txns, final, level)
				if want == "" && len(found) > 0 || want != "" && (len(found) == 0 || found[0].Kind != want) {
					t.Errorf("level %d: %v, want %q", level, found, want)
				}
			}
		})
	}
}

// A long history in order has nothing wrong; two appends of it exchanged have.
func TestLong(t *testing.T) {
	const n = 3000
	var txns []*Txn
	final := map[int][]int{}
	for i := range n {
		key := i / 30
		final[key] = append(final[key], i)
		txns = append(txns, &Txn{Name: fmt.Sprint("T", i), Begin: int64(3 * i), End: int64(3*i + 4),
			Ops: []Op{{Key: key, Append: true, Value: i}, {Key: key, Read: append([]int(nil), final[key]...)}}})
	}
	for _, level := range []Level{Serializable, RepeatableRead} {
		if found := Check(txns, final, level); len(found) > 0 {
			t.Errorf("level %d: %v", level, found[0])
		}
	}
	txns[100].Begin, txns[100].End = 8000, 8001
	for _, level := range []Level{Serializable, RepeatableRead} {
		if found := Check(txns, final, level); len(found) == 0 || !strings.HasSuffix(found[0].Kind, "realtime") {
			t.Errorf("level %d: %v", level, found)
		}
	}
}
