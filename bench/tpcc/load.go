package main

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// loader fills the tables as clause 4.3.3 says. Warehouses are independent of each
// other and loaded by several connections.
type loader struct {
	db    *sql.DB
	seed  uint64
	tasks int
}

func (l *loader) run(ctx context.Context, warehouses int) error {
	jobs := make(chan int)
	errs := make(chan error, l.tasks)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for range l.tasks {
		all.Go(func() {
			for w := range jobs {
				var err error
				if w == 0 {
					err = l.items(ctx)
				} else {
					err = l.warehouse(ctx, w)
				}
				if err != nil {
					errs <- fmt.Errorf("warehouse %d: %w", w, err)
					cancel()
					return
				}
			}
		})
	}
	go func() {
		defer close(jobs)
		for w := range warehouses + 1 {
			select {
			case jobs <- w:
			case <-ctx.Done():
				return
			}
		}
	}()
	all.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return ctx.Err()
	}
}

// batch collects rows of a table and inserts many with one statement. Statements are built
// in memory that is used again: what the driver does is taken from the servers.
type batch struct {
	ctx  context.Context
	db   *sql.DB
	head string
	b    []byte
	rows int
}

const batchRows = 500

func (l *loader) insert(ctx context.Context, table string) *batch {
	return &batch{ctx: ctx, db: l.db, head: "INSERT INTO " + table + " VALUES "}
}

// add adds a row. Values have no quotes or backslashes in them.
func (b *batch) add(values ...any) error {
	if b.rows == 0 {
		b.b = append(b.b[:0], b.head...)
	} else {
		b.b = append(b.b, ',')
	}
	for i, v := range values {
		if i == 0 {
			b.b = append(b.b, '(')
		} else {
			b.b = append(b.b, ',')
		}
		switch v := v.(type) {
		case nil:
			b.b = append(b.b, "NULL"...)
		case string:
			b.b = append(append(append(b.b, '\''), v...), '\'')
		case int:
			b.b = strconv.AppendInt(b.b, int64(v), 10)
		default:
			b.b = fmt.Append(b.b, v)
		}
	}
	b.b = append(b.b, ')')
	if b.rows++; b.rows == batchRows {
		return b.flush()
	}
	return nil
}

func (b *batch) flush() error {
	if b.rows == 0 {
		return nil
	}
	_, err := b.db.ExecContext(b.ctx, string(b.b))
	b.rows = 0
	return err
}

func now() string { return time.Now().UTC().Format(time.DateTime) }

func (l *loader) items(ctx context.Context) error {
	r := newRandom(l.seed, 0, loadConstants(l.seed))
	b := l.insert(ctx, "item")
	for i := 1; i <= items; i++ {
		if err := b.add(i, r.between(1, 10_000), r.text(14, 24), r.cents(100, 10_000), r.data()); err != nil {
			return err
		}
	}
	return b.flush()
}

// tenThousandth is a number of four decimal digits.
func tenThousandth(n int) string { return fmt.Sprintf("0.%04d", n) }

func (l *loader) warehouse(ctx context.Context, w int) error {
	r := newRandom(l.seed, w, loadConstants(l.seed))
	b := l.insert(ctx, "warehouse")
	err := b.add(w, r.text(6, 10), r.text(10, 20), r.text(10, 20), r.text(10, 20), r.of(letters[26:52], 2, 2), r.zip(),
		tenThousandth(r.between(0, 2000)), money(initialWarehouse*100))
	if err == nil {
		err = b.flush()
	}
	if err == nil {
		err = l.stock(ctx, r, w)
	}
	for d := 1; d <= districts && err == nil; d++ {
		err = l.district(ctx, r, w, d)
	}
	return err
}

func (l *loader) stock(ctx context.Context, r *random, w int) error {
	b := l.insert(ctx, "stock")
	for i := 1; i <= items; i++ {
		row := []any{i, w, r.between(10, 100)}
		for range districts {
			row = append(row, r.text(24, 24))
		}
		if err := b.add(append(row, 0, 0, 0, r.data())...); err != nil {
			return err
		}
	}
	return b.flush()
}

func (l *loader) district(ctx context.Context, r *random, w, d int) error {
	b := l.insert(ctx, "district")
	err := b.add(d, w, r.text(6, 10), r.text(10, 20), r.text(10, 20), r.text(10, 20), r.of(letters[26:52], 2, 2), r.zip(),
		tenThousandth(r.between(0, 2000)), money(initialDistrict*100), customers+1)
	if err == nil {
		err = b.flush()
	}
	if err == nil {
		err = l.customers(ctx, r, w, d)
	}
	if err == nil {
		err = l.orders(ctx, r, w, d)
	}
	return err
}

func (l *loader) customers(ctx context.Context, r *random, w, d int) error {
	cb, hb := l.insert(ctx, "customer"), l.insert(ctx, "history")
	for c := 1; c <= customers; c++ {
		last := lastName(min(c-1, lastNamesToLoad-1))
		if c > lastNamesToLoad {
			last = r.lastName()
		}
		credit := "GC"
		if r.IntN(10) == 0 {
			credit = "BC"
		}
		if err := cb.add(c, d, w, r.text(8, 16), "OE", last, r.text(10, 20), r.text(10, 20), r.text(10, 20), r.of(letters[26:52], 2, 2), r.zip(),
			r.number(16, 16), now(), credit, "50000.00", tenThousandth(r.between(0, 5000)), "-10.00", "10.00", 1, 0, r.text(300, 500)); err != nil {
			return err
		}
		if err := hb.add(c, d, w, d, w, now(), "10.00", r.text(12, 24)); err != nil {
			return err
		}
	}
	if err := cb.flush(); err != nil {
		return err
	}
	return hb.flush()
}

func (l *loader) orders(ctx context.Context, r *random, w, d int) error {
	ob, lb, nb := l.insert(ctx, "orders"), l.insert(ctx, "order_line"), l.insert(ctx, "new_order")
	for i, c := range r.permutation(customers) {
		o, lines := i+1, r.between(5, maxLines)
		var carrier, delivered any
		if o < firstNewOrder {
			carrier, delivered = r.between(1, 10), now()
		} else if err := nb.add(o, d, w); err != nil {
			return err
		}
		if err := ob.add(o, d, w, c, now(), carrier, lines, 1); err != nil {
			return err
		}
		for n := 1; n <= lines; n++ {
			amount := money(0)
			if delivered == nil {
				amount = r.cents(1, 999_999)
			}
			if err := lb.add(o, d, w, n, r.between(1, items), w, delivered, 5, amount, r.text(24, 24)); err != nil {
				return err
			}
		}
	}
	for _, b := range []*batch{ob, lb, nb} {
		if err := b.flush(); err != nil {
			return err
		}
	}
	return nil
}
