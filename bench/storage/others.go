package main

import (
	"fmt"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	bolt "go.etcd.io/bbolt"

	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// reader reads a row by its id, in a transaction of its own, all columns decoded.
type reader interface{ get(id int64) error }

// writer inserts n rows with the given ids in one transaction, not synced.
type writer interface {
	batch(n int, id func(i int) int64) error
}

// scanner reads all rows and returns their number and the sum of colAmount.
type scanner interface {
	scan() (rows int, sum int64, err error)
}

// encoder makes keys and values as our engine does.
type encoder struct {
	schema *record.Schema
	m      maker
}

func newEncoder() (*encoder, error) {
	def := definition()
	def.ID, def.Version, def.RowVersion, def.NextColumn = 1, 1, record.FirstRowVersion, columns+1
	def.Indexes[0].ID = 1
	s, err := record.Prepare(def)
	return &encoder{schema: s}, err
}

func (e *encoder) key(dst []byte, id int64) []byte {
	return e.schema.Keys[0].AppendKey(dst, types.NewInt(id))
}

// entry returns key and value in memory of their own where own is set.
func (e *encoder) entry(key, value []byte, id int64) ([]byte, []byte, error) {
	value, err := e.schema.AppendRow(value, e.m.make(id), nil)
	return e.key(key, id), value, err
}

// bbolt is a bbolt database with the rows in one bucket.
type bbolt struct {
	db *bolt.DB
	e  *encoder
}

var bucketName = []byte("orders")

func openBbolt(dir string) (*bbolt, error) {
	e, err := newEncoder()
	if err != nil {
		return nil, err
	}
	db, err := bolt.Open(filepath.Join(dir, "bbolt.db"), 0o600, &bolt.Options{
		NoSync: true, NoFreelistSync: true, NoGrowSync: true, FreelistType: bolt.FreelistMapType,
		InitialMmapSize: 2 << 30, // no remapping, which waits for readers
	})
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket(bucketName)
		return err
	})
	return &bbolt{db: db, e: e}, err
}

func (b *bbolt) close() error { return b.db.Close() }

// put inserts rows in one transaction. bbolt copies the key and keeps the value's
// slice until the commit.
func (b *bbolt) put(n int, fill float64, id func(i int) int64) error {
	return b.db.Update(func(tx *bolt.Tx) error {
		bucket := tx.Bucket(bucketName)
		bucket.FillPercent = fill
		values := make([]byte, 0, n*(rowBytes+64))
		var key []byte
		for i := range n {
			from := len(values)
			var err error
			if key, values, err = b.e.entry(key[:0], values, id(i)); err != nil {
				return err
			}
			if err := bucket.Put(key, values[from:len(values):len(values)]); err != nil {
				return err
			}
		}
		return nil
	})
}

// load fills pages well, as a scan likes it.
func (b *bbolt) load(rows int) error {
	for from := 0; from < rows; from += 10_000 {
		err := b.put(min(10_000, rows-from), 0.95, func(i int) int64 { return int64(from+i) * idStep })
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bbolt) batch(n int, id func(i int) int64) error {
	return b.put(n, bolt.DefaultFillPercent, id)
}

type bboltReader struct {
	b     *bbolt
	key   []byte
	batch *types.Batch
}

func (b *bbolt) reader() reader {
	return &bboltReader{b: b, batch: newBatch(b.e.schema.Table, wholeRow)}
}

func (r *bboltReader) get(id int64) error {
	return r.b.db.View(func(tx *bolt.Tx) error {
		r.batch.Reset()
		r.key = r.b.e.key(r.key[:0], id)
		value := tx.Bucket(bucketName).Get(r.key)
		if value == nil {
			return fmt.Errorf("row %d is missing", id)
		}
		if err := decode(r.b.e.schema, r.key, value, wholeRow, r.batch); err != nil {
			return err
		}
		if got := r.batch.Vecs[colAmount].Int64s()[0]; got != amountOf(id) {
			return fmt.Errorf("row %d has amount %d", id, got)
		}
		return nil
	})
}

// decode appends the columns of a row to the batch.
func decode(s *record.Schema, key, value []byte, cols []int, batch *types.Batch) error {
	row, err := s.Row(key, value)
	if err != nil {
		return err
	}
	for i, c := range cols {
		if err := row.AppendTo(&batch.Vecs[i], c); err != nil {
			return err
		}
	}
	batch.EndRow()
	return nil
}

type bboltScanner struct {
	b     *bbolt
	cols  []int
	batch *types.Batch
	rows  []record.Row
}

func (b *bbolt) scanner(cols []int) scanner {
	return &bboltScanner{b: b, cols: cols, batch: newBatch(b.e.schema.Table, cols)}
}

// scan walks the bucket with a cursor and decodes a batch of rows at a time, a
// column after the other: what bbolt returns stays valid that long, and it is the
// fastest way that we know.
func (c *bboltScanner) scan() (rows int, sum int64, err error) {
	at := position(c.cols, colAmount)
	flush := func() error {
		c.batch.Reset()
		for i, col := range c.cols {
			if _, err := record.AppendColumn(&c.batch.Vecs[i], c.rows, col); err != nil {
				return err
			}
		}
		c.batch.SetLen(len(c.rows))
		rows += len(c.rows)
		sum += sumOf(c.batch.Vecs[at].Int64s())
		c.rows = c.rows[:0]
		return nil
	}
	err = c.b.db.View(func(tx *bolt.Tx) error {
		cur := tx.Bucket(bucketName).Cursor()
		for k, v := cur.First(); k != nil; k, v = cur.Next() {
			row, err := c.b.e.schema.Row(k, v)
			if err != nil {
				return err
			}
			if c.rows = append(c.rows, row); len(c.rows) == types.BatchRows {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		return flush()
	})
	return rows, sum, err
}

// lsm is a pebble database with the rows.
type lsm struct {
	db         *pebble.DB
	e          *encoder
	key, value []byte
}

func openPebble(dir string) (*lsm, error) {
	e, err := newEncoder()
	if err != nil {
		return nil, err
	}
	db, err := pebble.Open(filepath.Join(dir, "pebble"), &pebble.Options{
		CacheSize: 1 << 30, MemTableSize: 64 << 20, MemTableStopWritesThreshold: 4,
		L0CompactionThreshold: 4, L0StopWritesThreshold: 1000,
		Logger: quiet{},
	})
	if err != nil {
		return nil, err
	}
	return &lsm{db: db, e: e}, nil
}

// quiet drops pebble's log.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf("pebble: "+format, args...))
}

func (p *lsm) close() error { return p.db.Close() }

func (p *lsm) load(rows int) error {
	for from := 0; from < rows; from += 1000 {
		if err := p.batch(min(1000, rows-from), func(i int) int64 { return int64(from+i) * idStep }); err != nil {
			return err
		}
	}
	return p.db.Flush()
}

func (p *lsm) batch(n int, id func(i int) int64) error {
	b := p.db.NewBatch()
	defer b.Close()
	for i := range n {
		var err error
		if p.key, p.value, err = p.e.entry(p.key[:0], p.value[:0], id(i)); err != nil {
			return err
		}
		if err := b.Set(p.key, p.value, nil); err != nil {
			return err
		}
	}
	return b.Commit(pebble.NoSync)
}
