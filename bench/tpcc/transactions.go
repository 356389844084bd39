package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
)

// terminal runs transactions on a connection of its own, as a user of its warehouse.
type terminal struct {
	conn       *sql.Conn
	prepared   map[string]*sql.Stmt
	r          *random
	warehouses int
	home       int // warehouse
	delivered  int // orders, by committed deliveries
}

// errRollback ends a new-order transaction on purpose (clause 2.4.1.4). It counts as done.
var errRollback = errors.New("an unused item was ordered")

// stmt returns a statement, prepared once for each connection. It is run on the connection,
// which a transaction has to itself: sql.Tx would prepare it anew each time.
func (t *terminal) stmt(ctx context.Context, text string) (*sql.Stmt, error) {
	s := t.prepared[text]
	if s == nil {
		var err error
		if s, err = t.conn.PrepareContext(ctx, text); err != nil {
			return nil, err
		}
		t.prepared[text] = s
	}
	return s, nil
}

func (t *terminal) exec(ctx context.Context, text string, args ...any) (int64, error) {
	s, err := t.stmt(ctx, text)
	if err != nil {
		return 0, err
	}
	res, err := s.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// one changes exactly one row.
func (t *terminal) one(ctx context.Context, text string, args ...any) error {
	n, err := t.exec(ctx, text, args...)
	if err == nil && n != 1 {
		err = fmt.Errorf("%d rows, not one, by %s %v", n, text, args)
	}
	return err
}

func (t *terminal) row(ctx context.Context, into []any, text string, args ...any) error {
	s, err := t.stmt(ctx, text)
	if err != nil {
		return err
	}
	return s.QueryRowContext(ctx, args...).Scan(into...)
}

// rows calls fn for each row.
func (t *terminal) rows(ctx context.Context, into []any, fn func(), text string, args ...any) error {
	s, err := t.stmt(ctx, text)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		fn()
	}
	return rows.Err()
}

// transaction runs fn in a transaction.
func (t *terminal) transaction(ctx context.Context, fn func() error) error {
	tx, err := t.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(); err != nil {
		if rerr := tx.Rollback(); errors.Is(err, errRollback) {
			return rerr
		}
		return err
	}
	return tx.Commit()
}

// orderLine is what is ordered.
type orderLine struct {
	item, supply, quantity int
	price                  money
}

// newOrder is clause 2.4.
func (t *terminal) newOrder(ctx context.Context) error {
	r := t.r
	d, c := r.between(1, districts), r.customer()
	lines := make([]orderLine, r.between(5, maxLines))
	allLocal := 1
	for i := range lines {
		l := orderLine{item: r.item(), supply: t.home, quantity: r.between(1, 10)}
		if t.warehouses > 1 && r.IntN(100) == 0 {
			for l.supply == t.home {
				l.supply = r.between(1, t.warehouses)
			}
			allLocal = 0
		}
		lines[i] = l
	}
	if r.IntN(100) < rollbackPercent {
		lines[len(lines)-1].item = invalidItem
	}
	// One order of locks for all: deadlocks are rare then, as the clause's comment hopes.
	slices.SortFunc(lines, func(a, b orderLine) int {
		if a.supply != b.supply {
			return a.supply - b.supply
		}
		return a.item - b.item
	})
	return t.transaction(ctx, func() error { return t.placeOrder(ctx, d, c, lines, allLocal) })
}

func (t *terminal) placeOrder(ctx context.Context, d, c int, lines []orderLine, allLocal int) error {
	w := t.home
	var wTax, dTax, discount float64
	var last, credit string
	var o int
	err := t.row(ctx, []any{&discount, &last, &credit, &wTax},
		"SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? AND c_id = ?", w, d, c)
	if err == nil {
		err = t.row(ctx, []any{&o, &dTax}, "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE", w, d)
	}
	if err == nil {
		err = t.one(ctx, "UPDATE district SET d_next_o_id = ? + 1 WHERE d_w_id = ? AND d_id = ?", o, w, d)
	}
	if err == nil {
		err = t.one(ctx, "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES (?, ?, ?, ?, ?, ?, ?)",
			o, d, w, c, now(), len(lines), allLocal)
	}
	if err == nil {
		err = t.one(ctx, "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)", o, d, w)
	}
	for i := 0; i < len(lines) && err == nil; i++ {
		err = t.orderItem(ctx, d, o, i+1, &lines[i])
	}
	return err
}

func (t *terminal) orderItem(ctx context.Context, d, o, number int, l *orderLine) error {
	var price, name, data string
	err := t.row(ctx, []any{&price, &name, &data}, "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?", l.item)
	if errors.Is(err, sql.ErrNoRows) {
		return errRollback
	}
	if err != nil {
		return err
	}
	if l.price, err = parseMoney(price); err != nil {
		return err
	}
	var quantity int
	var stockData, info string
	if err := t.row(ctx, []any{&quantity, &stockData, &info},
		fmt.Sprintf("SELECT s_quantity, s_data, s_dist_%02d FROM stock WHERE s_i_id = ? AND s_w_id = ? FOR UPDATE", d), l.item, l.supply); err != nil {
		return err
	}
	if quantity -= l.quantity; quantity < 10 {
		quantity += 91
	}
	remote := 0
	if l.supply != t.home {
		remote = 1
	}
	if err := t.one(ctx, "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? WHERE s_i_id = ? AND s_w_id = ?",
		quantity, l.quantity, remote, l.item, l.supply); err != nil {
		return err
	}
	return t.one(ctx, "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		o, d, t.home, number, l.item, l.supply, l.quantity, (money(l.quantity) * l.price).String(), info)
}

// somebody is the customer of a payment or a question: by number or by last name.
type somebody struct {
	w, d, id int
	last     string // empty: by number
}

func (t *terminal) somebody(w, d int) somebody {
	if t.r.IntN(100) < 60 {
		return somebody{w: w, d: d, last: t.r.lastName()}
	}
	return somebody{w: w, d: d, id: t.r.customer()}
}

// find looks up the number of a customer known by name: the middle one of those, by
// first name (clause 2.5.2.2).
func (t *terminal) find(ctx context.Context, s *somebody) error {
	if s.last == "" {
		return nil
	}
	var ids []int
	var id int
	err := t.rows(ctx, []any{&id}, func() { ids = append(ids, id) },
		"SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first", s.w, s.d, s.last)
	if err == nil && len(ids) == 0 {
		err = fmt.Errorf("nobody is called %s in district %d of warehouse %d", s.last, s.d, s.w)
	}
	if err == nil {
		s.id = ids[(len(ids)+1)/2-1]
	}
	return err
}

// payment is clause 2.5.
func (t *terminal) payment(ctx context.Context) error {
	r, w := t.r, t.home
	d := r.between(1, districts)
	who := t.somebody(w, d)
	if t.warehouses > 1 && r.IntN(100) < 15 {
		for who.w == w {
			who.w = r.between(1, t.warehouses)
		}
		who.d = r.between(1, districts)
	}
	amount := r.cents(100, 500_000)
	return t.transaction(ctx, func() error { return t.pay(ctx, d, who, amount) })
}

func (t *terminal) pay(ctx context.Context, d int, who somebody, amount money) error {
	w := t.home
	var wName, dName, x string
	address := []any{nil, &x, &x, &x, &x, &x}
	err := t.one(ctx, "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?", amount.String(), w)
	if err == nil {
		address[0] = &wName
		err = t.row(ctx, address, "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ?", w)
	}
	if err == nil {
		err = t.one(ctx, "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?", amount.String(), w, d)
	}
	if err == nil {
		address[0] = &dName
		err = t.row(ctx, address, "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district WHERE d_w_id = ? AND d_id = ?", w, d)
	}
	if err == nil {
		err = t.find(ctx, &who)
	}
	var balance, credit, data string
	if err == nil {
		err = t.row(ctx, []any{&balance, &credit, &data, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x},
			"SELECT c_balance, c_credit, c_data, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit_lim, c_discount "+
				"FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE", who.w, who.d, who.id)
	}
	if err != nil {
		return err
	}
	if credit == "BC" {
		data = fmt.Sprintf("%d %d %d %d %d %s|%s", who.id, who.d, who.w, d, w, amount, data)
		err = t.one(ctx, "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
			amount.String(), amount.String(), data[:min(len(data), 500)], who.w, who.d, who.id)
	} else {
		err = t.one(ctx, "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
			amount.String(), amount.String(), who.w, who.d, who.id)
	}
	if err == nil {
		err = t.one(ctx, "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			who.id, who.d, who.w, d, w, now(), amount.String(), wName+"    "+dName)
	}
	return err
}

// orderStatus is clause 2.6.
func (t *terminal) orderStatus(ctx context.Context) error {
	who := t.somebody(t.home, t.r.between(1, districts))
	return t.transaction(ctx, func() error {
		err := t.find(ctx, &who)
		var x, entry string
		if err == nil {
			err = t.row(ctx, []any{&x, &x, &x, &x}, "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", who.w, who.d, who.id)
		}
		var o int
		var carrier, delivered sql.NullString
		if err == nil {
			err = t.row(ctx, []any{&o, &entry, &carrier},
				"SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1", who.w, who.d, who.id)
		}
		if err != nil {
			return err
		}
		lines := 0
		err = t.rows(ctx, []any{&x, &x, &x, &x, &delivered}, func() { lines++ },
			"SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?", who.w, who.d, o)
		if err == nil && lines == 0 {
			err = fmt.Errorf("order %d of district %d of warehouse %d has no lines", o, who.d, who.w)
		}
		return err
	})
}

// delivery is clause 2.7, in one transaction for all districts.
func (t *terminal) delivery(ctx context.Context) error {
	carrier, n := t.r.between(1, 10), 0
	err := t.transaction(ctx, func() error {
		n = 0
		for d := 1; d <= districts; d++ {
			done, err := t.deliver(ctx, d, carrier)
			if err != nil {
				return err
			}
			if done {
				n++
			}
		}
		return nil
	})
	if err == nil {
		t.delivered += n
	}
	return err
}

func (t *terminal) deliver(ctx context.Context, d, carrier int) (bool, error) {
	w := t.home
	var o, c int
	err := t.row(ctx, []any{&o}, "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1 FOR UPDATE", w, d)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err == nil {
		err = t.one(ctx, "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?", w, d, o)
	}
	if err == nil {
		err = t.row(ctx, []any{&c}, "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?", w, d, o)
	}
	if err == nil {
		err = t.one(ctx, "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?", carrier, w, d, o)
	}
	if err == nil {
		_, err = t.exec(ctx, "UPDATE order_line SET ol_delivery_d = ? WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?", now(), w, d, o)
	}
	var sum string
	if err == nil {
		err = t.row(ctx, []any{&sum}, "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?", w, d, o)
	}
	if err == nil {
		err = t.one(ctx, "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", sum, w, d, c)
	}
	return err == nil, err
}

// stockLevel is clause 2.8.
func (t *terminal) stockLevel(ctx context.Context) error {
	d, threshold := t.r.between(1, districts), t.r.between(10, 20)
	return t.transaction(ctx, func() error {
		var next, low int
		err := t.row(ctx, []any{&next}, "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?", t.home, d)
		if err == nil {
			err = t.row(ctx, []any{&low}, "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ? AND ol_o_id >= ? "+
				"AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?", t.home, d, next, next-20, t.home, threshold)
		}
		return err
	})
}
