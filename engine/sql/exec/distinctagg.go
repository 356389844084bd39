package exec

import (
	"slices"

	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/types"
)

// distinctInputs lets an aggregate see each combination of its arguments once for each
// group. What does not fit into memory goes to disk in parts, which are looked at when
// the input has ended.
type distinctInputs struct {
	r       *run
	agg     *groupAggregate
	grouped bool
	args    int
	set     *keySet
	types   []*types.Type // group, if there are several, and inputs
	row     types.Batch
	group   types.Vector
	ids     []uint32
	keep    []uint32
	rest    []uint32
	dense   *types.Batch
	zeros   []zeroKey
	vecs    []*types.Vector
	spill   spiller
}

// zeroKey is a column of text of floating-point numbers, and what it is as a key: -0 is 0 there.
type zeroKey struct {
	column int
	text   types.Vector
}

var groupNumberType = &types.Type{Kind: types.KindBigInt, Unsigned: true, NotNull: true}

func newDistinctInputs(r *run, a *groupAggregate, grouped bool) *distinctInputs {
	d := &distinctInputs{r: r, agg: a, grouped: grouped, args: len(a.call.Args())}
	if grouped {
		d.types = append(d.types, groupNumberType)
		d.group.Init(groupNumberType)
	}
	d.types = append(d.types, a.inputs.types()...)
	n := d.args + len(d.types) - len(a.inputs.nodes)
	d.set = newKeySet(r, d.types[:n])
	for _, arg := range a.call.FloatTexts() {
		z := zeroKey{column: n - d.args + arg}
		z.text.Init(d.types[z.column])
		d.zeros = append(d.zeros, z)
	}
	d.row.Vecs = make([]types.Vector, len(d.types))
	d.dense = newBatch(d.types)
	d.vecs = make([]*types.Vector, len(a.inputs.nodes))
	return d
}

func (d *distinctInputs) reset() {
	d.set.reset()
	d.spill.close(d.r)
}

// update adds the rows whose inputs the aggregate has evaluated.
func (d *distinctInputs) update(ids []uint32, n int) error {
	at := 0
	if d.grouped {
		d.group.Resize(n)
		for i, id := range ids[:n] {
			d.group.Uint64s()[i] = uint64(id)
		}
		d.row.Vecs[0] = d.group
		at = 1
	}
	for i, v := range d.agg.inputs.vecs {
		d.row.Vecs[at+i] = *v
	}
	d.row.SetLen(n)
	return d.add(&d.row)
}

// add adds rows of group number and inputs.
func (d *distinctInputs) add(b *types.Batch) error {
	keys := d.keys(b)
	d.keep, d.rest = d.set.add(&keys, d.keep[:0], d.rest[:0])
	if len(d.rest) > 0 {
		if err := d.spill.add(d.r, d.types, "DISTINCT", b, d.rest, d.set.hashes(&keys)); err != nil {
			return err
		}
	}
	if len(d.keep) == 0 {
		return nil
	}
	if len(d.keep) < b.Len() {
		d.dense.Reset()
		d.dense.Gather(b, d.keep)
		b = d.dense
	}
	at := len(d.types) - len(d.vecs)
	for i := range d.vecs {
		d.vecs[i] = &b.Vecs[at+i]
	}
	var ids []uint32
	if d.grouped {
		d.ids = d.ids[:0]
		for _, id := range b.Vecs[0].Uint64s() {
			d.ids = append(d.ids, uint32(id))
		}
		ids = d.ids
	}
	return d.agg.states.Update(d.r.x, ids, b.Len(), d.vecs)
}

// keys are the columns by which rows are told apart.
func (d *distinctInputs) keys(b *types.Batch) types.Batch {
	keys := types.Batch{Vecs: b.Vecs[:len(d.set.types)]}
	if len(d.zeros) > 0 {
		keys.Vecs = slices.Clone(keys.Vecs)
	}
	for i := range d.zeros {
		z := &d.zeros[i]
		from := &keys.Vecs[z.column]
		z.text.Reset()
		for k := range b.Len() {
			if from.IsNull(k) {
				z.text.AppendNull()
			} else {
				z.text.AppendBytes(expr.UnsignedZero(from.BytesAt(k)))
			}
		}
		keys.Vecs[z.column] = z.text
	}
	keys.SetLen(b.Len())
	return keys
}

// finish looks at what went to disk.
func (d *distinctInputs) finish() error {
	for {
		b, begins, err := d.spill.next(d.r, d.types)
		if err != nil || b == nil {
			d.reset()
			return err
		}
		if begins {
			d.set.reset()
		}
		if err := d.add(b); err != nil {
			return err
		}
	}
}
