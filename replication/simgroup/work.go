package simgroup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/triremedb/trireme/e2e/history"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/group"
)

// The load besides transfers:
//
//   - lists, to which transactions append, and which they read as a whole;
//   - registers, each with a value that is written once and a tag that no two have;
//   - documents, long enough to lie on pages of their own;
//   - parents and children, which refer to them.
const (
	listSlots  = 5  // lists in use at a time
	listLength = 40 // then another one takes the slot
	registers  = 6
	tags       = 12
)

func moreTables() []record.Table {
	text := types.Type{Kind: types.KindLongText, NotNull: true, Collation: types.CollationUTF8MB40900AI}
	blob := types.Type{Kind: types.KindLongBlob, NotNull: true, Collation: types.CollationBinary}
	return []record.Table{
		{Schema: "bank", Name: "lists", Columns: columns(named{"id", big}, named{"items", text}),
			Indexes: []record.Index{primary}},
		{Schema: "bank", Name: "registers", Columns: columns(named{"id", big}, named{"value", big}, named{"tag", big}),
			Indexes: []record.Index{primary, {Name: "tag", Unique: true, Parts: []record.Part{{Column: 3}}}}},
		{Schema: "bank", Name: "docs", Columns: columns(named{"id", big}, named{"body", blob}),
			Indexes: []record.Index{primary, {Name: "body", Parts: []record.Part{{Column: 2, Prefix: 12}}}}},
		{Schema: "bank", Name: "parents", Columns: columns(named{"id", big}), Indexes: []record.Index{primary}},
		{Schema: "bank", Name: "children", Columns: columns(named{"id", big}, named{"parent", big}),
			Indexes: []record.Index{primary, {Name: "parent", Parts: []record.Part{{Column: 2}}}},
			ForeignKeys: []record.ForeignKey{{Name: "parent", Columns: []uint32{2}, RefSchema: "bank",
				RefTable: "parents", RefColumns: []string{"id"}}}},
	}
}

// named is a column.
type named struct {
	name string
	kind types.Type
}

// columns numbers columns from 1 on.
func columns(all ...named) []record.Column {
	out := make([]record.Column, len(all))
	for i, c := range all {
		out[i] = record.Column{ID: uint32(i + 1), Name: c.name, Type: c.kind}
	}
	return out
}

// makeRegisters gives each register the value 0 and a tag of its own.
func makeRegisters(s *txn.Session) error {
	t, err := s.Open("bank", "registers")
	if err != nil {
		return err
	}
	rows := make([][]types.Value, registers)
	for i := range rows {
		rows[i] = []types.Value{types.NewInt(int64(i)), types.NewInt(0), types.NewInt(int64(i))}
	}
	_, err = s.InsertRows(t, rows, false)
	return err
}

// draw chooses what a client does next; nil: it locks and reads only.
func (w *world) draw(rng *rand.Rand) work {
	switch n := rng.IntN(20); {
	case n < 5:
		return (*world).transfer
	case n < 10:
		return (*world).useLists
	case n < 13:
		return (*world).useRegisters
	case n < 15:
		return (*world).useFamily
	case n < 16:
		return (*world).useDocs
	}
	return nil
}

// key is the clustered key of the row with a number.
func key(t *txn.Table, id int64) []byte {
	return t.Table().Schema.Keys[0].AppendKey(nil, types.NewInt(id))
}

// read reads columns of the row with a number, in a snapshot or with locks; nil: there is none.
func read(s *txn.Session, t *txn.Table, id int64, locked bool, mode lock.Mode, columns ...int) ([]types.Value, error) {
	kinds := make([]*types.Type, len(columns))
	for i, c := range columns {
		kinds[i] = &t.Definition().Columns[c].Type
	}
	b := types.NewBatch(kinds)
	var found bool
	var err error
	if locked {
		found, err = s.GetLocked(t, key(t, id), mode, lock.Block, columns, b)
	} else {
		found, err = s.Get(t, key(t, id), columns, b)
	}
	if err != nil || !found {
		return nil, err
	}
	return b.Row(nil, 0), nil
}

// A list is text: its numbers, each with a comma behind it. One of five begins with so many
// blanks that it lies on pages of its own.
var blanks = bytes.Repeat([]byte{' '}, 9000)

func parseList(text []byte) ([]int, error) {
	text = bytes.TrimLeft(text, " ")
	var list []int
	for len(text) > 0 {
		number, rest, ok := bytes.Cut(text, []byte{','})
		n, err := strconv.Atoi(string(number))
		if !ok || err != nil {
			return nil, fmt.Errorf("a list holds %q", text)
		}
		list, text = append(list, n), rest
	}
	return list, nil
}

// list is the list that is in a slot by now.
func (w *world) list(slot int) int { return slot + listSlots*w.slots[slot] }

// readList reads a list as a whole.
func (w *world) readList(s *txn.Session, t *txn.Table, list int, locked bool) (items []int, text []byte, err error) {
	row, err := read(s, t, int64(list), locked, lock.RecordX, 1)
	if err != nil || row == nil {
		return nil, nil, err
	}
	text = row[0].Bytes()
	if items, err = parseList(text); err != nil {
		w.failf("list %d: %v", list, err)
	}
	if slot := list % listSlots; len(items) >= listLength && w.list(slot) == list {
		w.slots[slot]++
	}
	return items, text, err
}

// useLists reads lists and appends to them.
func (w *world) useLists(_ *node, s *txn.Session, rng *rand.Rand, y *try) error {
	t, err := s.Open("bank", "lists")
	if err != nil {
		return err
	}
	for range 1 + rng.IntN(3) {
		list, kind := w.list(rng.IntN(listSlots)), rng.IntN(4)
		locked := kind < 3 || s.Trx().LockingReads()
		items, text, err := w.readList(s, t, list, locked)
		if err != nil {
			return err
		}
		y.lists = append(y.lists, history.Op{Key: list, Read: items, Locked: locked})
		if kind > 1 {
			continue
		}
		if rng.IntN(6) == 0 {
			if err := w.changeMind(s, t, list, text); err != nil {
				return err
			}
		}
		w.value++
		value := w.value // others go on while this one waits for the disk
		if err := appendTo(s, t, list, text, value); err != nil {
			return err
		}
		y.lists = append(y.lists, history.Op{Key: list, Append: true, Value: value})
	}
	y.note = fmt.Sprint("lists ", w.history.now())
	return nil
}

func appendTo(s *txn.Session, t *txn.Table, list int, text []byte, value int) error {
	after := strconv.AppendInt(bytes.Clone(text), int64(value), 10)
	if text != nil {
		items := types.NewBytes(append(after, ','))
		_, err := s.Update(t, key(t, int64(list)), nil, []record.Change{{Column: 1, Value: items}})
		return err
	}
	if list%listSlots == 0 {
		after = append(bytes.Clone(blanks), after...)
	}
	return s.Insert(t, []types.Value{types.NewInt(int64(list)), types.NewBytes(append(after, ','))}, false)
}

// changeMind appends a number that nobody may ever see, and takes it back.
func (w *world) changeMind(s *txn.Session, t *txn.Table, list int, text []byte) error {
	err := s.Savepoint("here")
	if err == nil {
		err = appendTo(s, t, list, text, -w.value)
	}
	if err == nil {
		err = s.RollbackTo("here")
	}
	return err
}

// set is a write of a register.
type set struct{ register, value, tag int64 }

// sight is what a read of a register has seen.
type sight struct {
	reader          string
	register, value int64
	began           int64
	stale           bool
	snapshot        uint64 // its number; 0: with locks
}

// taken is a tag that was said to be another register's.
type taken struct {
	tag          int64
	by           int64 // the register that was to have it
	began, ended int64
}

// useRegisters writes registers, some by what they hold, and gives them other tags.
func (w *world) useRegisters(n *node, s *txn.Session, rng *rand.Rand, y *try) error {
	t, err := s.Open("bank", "registers")
	if err != nil {
		return err
	}
	for range 1 + rng.IntN(2) {
		to := set{register: rng.Int64N(registers), tag: -1}
		if rng.IntN(2) == 0 {
			row, err := read(s, t, to.register, true, lock.RecordX, 1)
			if err != nil || row == nil {
				return errors.Join(err, errors.New("no such register"))
			}
			y.saw = append(y.saw, sight{register: to.register, value: row[0].Int(), began: y.began})
		}
		w.value++
		to.value = int64(w.value)
		changes := []record.Change{{Column: 1, Value: types.NewInt(to.value)}}
		if rng.IntN(2) == 0 {
			to.tag = rng.Int64N(tags)
			changes = append(changes, record.Change{Column: 2, Value: types.NewInt(to.tag)})
		}
		_, err = s.Update(t, key(t, to.register), nil, changes)
		var duplicate *table.DuplicateError
		if errors.As(err, &duplicate) {
			if slices.ContainsFunc(y.sets, func(o set) bool { return o.tag == to.tag }) {
				return duplicate // it has given the tag away itself
			}
			if err := w.hear(n, s, taken{tag: to.tag, by: to.register, began: y.began}); err != nil || rng.IntN(2) == 0 {
				return errors.Join(err, duplicate)
			}
			to.tag = -1
			_, err = s.Update(t, key(t, to.register), nil, changes[:1])
		}
		if err != nil {
			return err
		}
		y.sets = append(y.sets, to)
	}
	y.note = fmt.Sprint("registers ", w.history.now())
	return nil
}

// hear waits until a client may be told that a key is taken: as a session does, that this node has led until then is asked last,
// for the read point may be one of the next leader, which has what the transaction has not seen.
func (w *world) hear(n *node, s *txn.Session, k taken) error {
	g := n.node
	if g == nil {
		return group.ErrStopped
	}
	if err := s.Settle(ctx); err != nil {
		return err
	}
	if _, err := g.ReadPoint(group.ReadOptions{Wait: time.Second}); err != nil {
		return err
	}
	if err := s.Wrote(); err != nil {
		return err
	}
	k.ended = w.history.now()
	w.history.told = append(w.history.told, k)
	return nil
}

// look locks lists and registers and reads them, and changes nothing.
func (w *world) look(n *node, rng *rand.Rand, client, i int) {
	x := &history.Txn{Name: fmt.Sprintf("look %d of client %d", i, client), Outcome: history.Aborted}
	var saw []sight
	x.Begin = w.history.now()
	n.env.Run(func() {
		if n.node != nil && w.lookAt(n, rng, x, &saw) == nil {
			x.Outcome = history.Committed
		}
	})
	if x.Outcome != history.Committed {
		return
	}
	x.End = w.history.now()
	w.history.reads++
	w.history.looks = append(w.history.looks, x)
	w.history.saw = append(w.history.saw, saw...)
}

func (w *world) lookAt(n *node, rng *rand.Rand, x *history.Txn, saw *[]sight) error {
	g := n.node
	s, err := g.NewSession()
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if err := s.Begin(txn.BeginOptions{}); err != nil {
		return err
	}
	lists, err := s.Open("bank", "lists")
	if err != nil {
		return err
	}
	for range 1 + rng.IntN(2) {
		list := w.list(rng.IntN(listSlots))
		items, _, err := w.readList(s, lists, list, true)
		if err != nil {
			return err
		}
		x.Ops = append(x.Ops, history.Op{Key: list, Read: items, Locked: true})
	}
	t, err := s.Open("bank", "registers")
	if err != nil {
		return err
	}
	row, err := read(s, t, rng.Int64N(registers), true, lock.RecordS, 0, 1)
	if err != nil {
		return err
	}
	if row != nil {
		*saw = append(*saw, sight{reader: x.Name, register: row[0].Int(), value: row[1].Int(), began: x.Begin})
	}
	if rng.IntN(2) == 0 {
		if err := s.Settle(ctx); err != nil {
			return err
		}
	}
	// Only a member that leads has the newest version.
	if _, err := g.ReadPoint(group.ReadOptions{Wait: time.Second}); err != nil {
		return err
	}
	_, err = s.Commit(ctx)
	return err
}

// rowOf is a row of a table whose rows are made once and deleted once at most.
type rowOf struct {
	table string
	id    int64
}

// body is the content of a document: of many lengths, and hard to compress.
func document(id int64) []byte {
	rng := rand.New(rand.NewPCG(uint64(id), 4))
	b := make([]byte, 200+rng.IntN(24000))
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], rng.Uint64())
	}
	return b
}

// useDocs adds a document or deletes one.
func (w *world) useDocs(_ *node, s *txn.Session, rng *rand.Rand, y *try) error {
	t, err := s.Open("bank", "docs")
	if err != nil {
		return err
	}
	if w.value++; len(w.docs) < 8 || rng.IntN(3) > 0 {
		id := int64(w.value)
		if err := s.Insert(t, []types.Value{types.NewInt(id), types.NewBytes(document(id))}, false); err != nil {
			return err
		}
		w.docs = append(w.docs, id)
		y.made = append(y.made, rowOf{"docs", id})
	} else {
		id := w.docs[rng.IntN(len(w.docs))]
		err := s.Delete(t, key(t, id), nil)
		if err != nil {
			return err
		}
		y.gone = append(y.gone, rowOf{"docs", id})
	}
	y.note = fmt.Sprint("docs ", w.value)
	return nil
}

// useFamily adds a parent or a child, gives a child another parent, or deletes a child or a
// parent that has none.
func (w *world) useFamily(_ *node, s *txn.Session, rng *rand.Rand, y *try) error {
	parents, err := s.Open("bank", "parents")
	if err != nil {
		return err
	}
	children, err := s.Open("bank", "children")
	if err != nil {
		return err
	}
	w.value++
	id := int64(w.value)
	y.note = fmt.Sprint("family ", id)
	some := func(ids []int64) int64 { return ids[rng.IntN(len(ids))] }
	switch kind := rng.IntN(6); {
	case kind == 0 || len(w.parents) < 3:
		w.parents = append(w.parents, id)
		y.made = append(y.made, rowOf{"parents", id})
		return s.Insert(parents, []types.Value{types.NewInt(id)}, false)
	case kind < 3 || len(w.children) < 3:
		parent := some(w.parents)
		w.children = append(w.children, id)
		y.made = append(y.made, rowOf{"children", id})
		if err := lockParent(s, parents, parent, lock.RecordS); err != nil {
			return err
		}
		return s.Insert(children, []types.Value{types.NewInt(id), types.NewInt(parent)}, false)
	case kind == 3:
		parent := some(w.parents)
		if err := lockParent(s, parents, parent, lock.RecordS); err != nil {
			return err
		}
		change := []record.Change{{Column: 1, Value: types.NewInt(parent)}}
		_, err := s.Update(children, key(children, some(w.children)), nil, change)
		return err
	case kind == 4:
		child := some(w.children)
		y.gone = append(y.gone, rowOf{"children", child})
		return s.Delete(children, key(children, child), nil)
	}
	parent := some(w.parents)
	if err := lockParent(s, parents, parent, lock.RecordX); err != nil {
		return err
	}
	if err := hasNoChild(s, children, parent); err != nil {
		return err
	}
	y.gone = append(y.gone, rowOf{"parents", parent})
	return s.Delete(parents, key(parents, parent), nil)
}

func lockParent(s *txn.Session, parents *txn.Table, id int64, mode lock.Mode) error {
	row, err := read(s, parents, id, true, mode, 0)
	if err == nil && row == nil {
		err = errors.New("no such parent")
	}
	return err
}

// hasNoChild locks the place where children of a parent would be.
func hasNoChild(s *txn.Session, children *txn.Table, parent int64) error {
	k := children.Table().Schema.Keys[1].AppendKey(nil, types.NewInt(parent))
	scan := s.NewScan()
	r := table.Range{Index: 1, Low: k, High: k, Columns: []int{0}, Locking: true, Lock: lock.RecordX}
	if err := scan.Start(children, r); err != nil {
		return err
	}
	b := types.NewBatch([]*types.Type{&children.Definition().Columns[0].Type})
	for more := true; more; {
		var err error
		if more, err = scan.Next(b); err != nil {
			return err
		}
		if b.Len() > 0 {
			return errors.New("the parent has a child")
		}
	}
	return nil
}
