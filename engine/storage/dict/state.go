package dict

import (
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// MaxStateKey is the longest key of a state area in bytes.
const MaxStateKey = 255

// Area is one of the two key-value areas of the layers above.
type Area uint8

const (
	// Replicated state changes by the group's log and is part of the state hash.
	Replicated Area = iota
	// Local state is this node's own.
	Local
)

func (c *Catalog) area(a Area) *table.Table {
	if a == Local {
		return c.own[idLocal]
	}
	return c.own[idState]
}

// GetState returns a value as t sees it; t may be nil. found is false if there is
// none.
func (c *Catalog) GetState(t *trx.Trx, a Area, key []byte) (value []byte, found bool, err error) {
	r, err := c.reader()
	if err != nil {
		return nil, false, err
	}
	defer c.done(r)
	row, err := r.get(c.area(a), r.latest(ownID(t)), bytesValue(key))
	if err != nil || row == nil {
		return nil, false, err
	}
	return row[stateValue].Bytes(), true, nil
}

// PutState sets a value in w's transaction: it commits, or does not, with whatever
// else the transaction changes.
func (c *Catalog) PutState(w *table.Worker, a Area, key, value []byte) error {
	if len(key) == 0 || len(key) > MaxStateKey {
		return fmt.Errorf("dict: a state key has 1 to %d bytes, not %d", MaxStateKey, len(key))
	}
	t := c.area(a)
	for {
		_, found, err := c.GetState(w.Trx(), a, key)
		if err != nil {
			return err
		}
		if !found {
			err = w.Insert(t, values{bytesValue(key), bytesValue(value)})
			if !isDuplicate(err) {
				return err
			}
		}
		change := []record.Change{{Column: stateValue, Value: bytesValue(value)}}
		err = w.Update(t, keyOf(t, values{bytesValue(key)}), change)
		if !errors.Is(err, table.ErrNotFound) {
			return err
		}
		// Another transaction inserted or deleted it meanwhile, and has ended.
	}
}

// DeleteState removes a value; that there is none is no error.
func (c *Catalog) DeleteState(w *table.Worker, a Area, key []byte) error {
	t := c.area(a)
	if _, found, err := c.GetState(w.Trx(), a, key); err != nil || !found && w.Applying {
		return err
	}
	err := w.Delete(t, keyOf(t, values{bytesValue(key)}))
	if errors.Is(err, table.ErrNotFound) {
		err = nil
	}
	return err
}

// EachState calls fn with the keys and values as the snapshot sees them, in the
// order of the keys; nil stands for what is committed now. They are valid until fn
// returns.
func (c *Catalog) EachState(snap *trx.Snapshot, a Area, fn func(key, value []byte) error) error {
	return c.EachStateFrom(snap, a, nil, nil, fn)
}

// EachStateFrom is EachState for the keys from one on and before another one; nil: from the first on, up to the last.
func (c *Catalog) EachStateFrom(snap *trx.Snapshot, a Area, from, before []byte, fn func(key, value []byte) error) error {
	r, err := c.reader()
	if err != nil {
		return err
	}
	defer c.done(r)
	if snap == nil {
		snap = r.latest(0)
	}
	t := c.area(a)
	var rng table.Range
	if from != nil {
		rng.Low = keyOf(t, values{bytesValue(from)})
	}
	if before != nil {
		rng.High, rng.HighOpen = keyOf(t, values{bytesValue(before)}), true
	}
	return c.scanRows(&r.scan, r.w, r.batch(t), t, snap, rng, nil, func(row values) error {
		return fn(row[stateKey].Bytes(), row[stateValue].Bytes())
	})
}
