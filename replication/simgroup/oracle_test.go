package simgroup

import (
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/history"
	"github.com/triremedb/trireme/internal/race"
)

// present returns the first operation that took place and suits.
func (w *world) present(suits func(o *op, y *try) bool) (*op, *try) {
	for _, o := range w.history.ops {
		if o.outcome == committed && len(o.tries) == 1 && suits(o, o.tries[0]) {
			return o, o.tries[0]
		}
	}
	w.failf("no operation suits")
	return &op{}, &try{}
}

// What clients were told is changed after a life in which all went well, such that the members
// do not have what they should: each check notices.
func TestOracle(t *testing.T) {
	any := func(*op, *try) bool { return true }
	sets := func(_ *op, y *try) bool { return len(y.sets) > 0 }
	lies := []struct {
		name, want string
		lie        func(w *world)
	}{
		{"a lost operation", "is lost", func(w *world) {
			w.history.ops = append(w.history.ops, &op{id: 7, outcome: committed, number: 1})
		}},
		{"a refused operation", "was refused and is there", func(w *world) {
			o, _ := w.present(any)
			o.outcome = refused
		}},
		{"other contents", "which none of its 1 tries wrote", func(w *world) {
			_, y := w.present(any)
			y.note = "other"
		}},
		{"an operation of nobody", "which nobody made", func(w *world) {
			w.history.ops = w.history.ops[1:]
		}},
		{"an effect that is not there", "by the operations that took place", func(w *world) {
			_, y := w.present(any)
			y.legs[0].amount++
		}},
		{"a row that is not there", "row 1000000 of docs is there: false", func(w *world) {
			_, y := w.present(any)
			y.made = append(y.made, rowOf{"docs", 1000000})
		}},
		{"a row that is there still", "is there: true, by the operations that took place: false", func(w *world) {
			gone := map[rowOf]bool{}
			for _, o := range w.history.ops {
				for _, y := range o.tries {
					for _, r := range y.gone {
						gone[r] = true
					}
				}
			}
			_, y := w.present(func(_ *op, y *try) bool { return len(y.made) == 1 && !gone[y.made[0]] })
			y.gone = y.made
		}},
		{"a row of nobody", "was made by nobody", func(w *world) {
			_, y := w.present(func(_ *op, y *try) bool { return len(y.made) > 0 })
			y.made = nil
		}},
		{"another number", "was acknowledged as transaction", func(w *world) {
			o, _ := w.present(any)
			o.number += 3
		}},
		{"numbers against time", "which had been acknowledged before it began", func(w *world) {
			o, _ := w.present(any)
			last := w.history.newest
			o.number, last.number = last.number, o.number
		}},
		{"a strong read that misses something", "lists: G", func(w *world) {
			for i := len(w.history.snaps) - 1; i >= 0; i-- {
				x := w.history.snaps[i].txn
				for n := range x.Ops {
					if items := x.Ops[n].Read; len(items) > 5 && !x.Stale {
						x.Ops[n].Read = items[:1]
						return
					}
				}
			}
		}},
		{"a snapshot that sees too much", "sees operation", func(w *world) {
			for _, s := range w.history.snaps {
				if len(s.txn.Ops[0].Read) > 2 && s.txn.Stale {
					s.snapshot = 12
					return
				}
			}
		}},
		{"a lost append", "lists: lost", func(w *world) {
			_, y := w.present(func(_ *op, y *try) bool { return len(y.lists) > 0 })
			y.lists = append(y.lists, history.Op{Key: 1, Append: true, Value: 1000000})
		}},
		{"a lost update", "lists: ", func(w *world) {
			_, y := w.present(func(_ *op, y *try) bool {
				return len(y.lists) > 1 && y.lists[1].Append && len(y.lists[0].Read) > 3
			})
			y.lists[0].Read = y.lists[0].Read[:2]
		}},
		{"a look at what was never there", "lists: phantom", func(w *world) {
			for _, x := range w.history.looks {
				if len(x.Ops[0].Read) > 0 {
					x.Ops[0].Read = append(x.Ops[0].Read, 1000000)
					return
				}
			}
		}},
		{"a register's value of nobody", "which nobody who took place wrote there", func(w *world) {
			w.history.saw[0].value = 1000000
		}},
		{"an old value of a register", "which had been acknowledged", func(w *world) {
			_, y := w.present(sets)
			w.history.saw = append(w.history.saw, sight{reader: "a read", register: y.sets[0].register,
				began: w.history.now()})
		}},
		{"a value of the future", "at transaction 1, saw", func(w *world) {
			_, y := w.present(func(o *op, y *try) bool { return len(y.sets) == 1 })
			w.history.saw = append(w.history.saw, sight{reader: "a read", register: y.sets[0].register,
				value: y.sets[0].value, snapshot: 1})
		}},
		{"an old value in a snapshot", "and not", func(w *world) {
			o, y := w.present(sets)
			w.history.saw = append(w.history.saw, sight{reader: "a read", register: y.sets[0].register,
				snapshot: o.number, stale: true})
		}},
		{"a tag that nobody had", "no register can have had it", func(w *world) {
			w.history.told = append(w.history.told, taken{tag: tags - 1, by: 0, began: -1, ended: -1})
		}},
		{"another definition", "it should be one of", func(w *world) {
			for slot := range w.history.defs {
				if all := w.history.defs[slot]; len(all) > 0 {
					all[len(all)-1] = definition{outcome: committed, name: "d0", mark: "other"}
				}
			}
		}},
	}
	for _, c := range lies[:race.Fewer(len(lies), 4)] {
		t.Run(c.name, func(t *testing.T) {
			r := Run(Options{Seed: 4, Nodes: 3, Fixed: true, Harmless: true, Duration: 1500 * time.Millisecond,
				lie: c.lie})
			if !strings.Contains(r.Problem, c.want) {
				t.Errorf("found %q, want %q", r.Problem, c.want)
			}
		})
	}
}
