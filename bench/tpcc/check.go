package main

import (
	"context"
	"database/sql"
	"fmt"
)

// condition is one of the consistency conditions of clause 3.3.2: a query that counts
// what violates it.
type condition struct {
	number int
	what   string
	query  string
}

var conditions = []condition{
	{1, "W_YTD = sum(D_YTD)",
		`SELECT COUNT(*) FROM warehouse, (SELECT d_w_id, SUM(d_ytd) AS total FROM district GROUP BY d_w_id) d WHERE w_id = d_w_id AND w_ytd <> total`},
	{2, "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
		`SELECT COUNT(*) FROM district, (SELECT o_w_id, o_d_id, MAX(o_id) AS newest FROM orders GROUP BY o_w_id, o_d_id) o
WHERE o_w_id = d_w_id AND o_d_id = d_id AND d_next_o_id - 1 <> newest`},
	{2, "max(NO_O_ID) = max(O_ID)",
		`SELECT COUNT(*) FROM district, (SELECT no_w_id, no_d_id, MAX(no_o_id) AS newest FROM new_order GROUP BY no_w_id, no_d_id) n
WHERE no_w_id = d_w_id AND no_d_id = d_id AND d_next_o_id - 1 <> newest`},
	{3, "max(NO_O_ID) - min(NO_O_ID) + 1 = rows of NEW-ORDER",
		`SELECT COUNT(*) FROM (SELECT no_w_id, no_d_id, MAX(no_o_id) - MIN(no_o_id) + 1 AS span, COUNT(*) AS n FROM new_order GROUP BY no_w_id, no_d_id) x WHERE span <> n`},
	{4, "sum(O_OL_CNT) = rows of ORDER-LINE",
		`SELECT COUNT(*) FROM (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS total FROM orders GROUP BY o_w_id, o_d_id) o,
(SELECT ol_w_id, ol_d_id, COUNT(*) AS n FROM order_line GROUP BY ol_w_id, ol_d_id) l WHERE o_w_id = ol_w_id AND o_d_id = ol_d_id AND total <> n`},
	{5, "O_CARRIER_ID is null if and only if there is a row of NEW-ORDER",
		`SELECT COUNT(*) FROM orders LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)`},
	{6, "O_OL_CNT = rows of ORDER-LINE of the order",
		`SELECT COUNT(*) FROM orders LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS n FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) l
ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE n IS NULL OR n <> o_ol_cnt`},
	{7, "OL_DELIVERY_D is null if and only if O_CARRIER_ID is",
		`SELECT COUNT(*) FROM order_line, orders WHERE o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id AND (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)`},
	{8, "W_YTD = sum(H_AMOUNT)",
		`SELECT COUNT(*) FROM warehouse, (SELECT h_w_id, SUM(h_amount) AS total FROM history GROUP BY h_w_id) h WHERE w_id = h_w_id AND w_ytd <> total`},
	{9, "D_YTD = sum(H_AMOUNT)",
		`SELECT COUNT(*) FROM district, (SELECT h_w_id, h_d_id, SUM(h_amount) AS total FROM history GROUP BY h_w_id, h_d_id) h
WHERE d_w_id = h_w_id AND d_id = h_d_id AND d_ytd <> total`},
	{10, "C_BALANCE = sum(OL_AMOUNT) of delivered lines - sum(H_AMOUNT)",
		`SELECT COUNT(*) FROM customer LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS bought FROM orders, order_line
WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id AND ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) b
ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) AS paid FROM history GROUP BY h_c_w_id, h_c_d_id, h_c_id) p
ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id WHERE c_balance <> COALESCE(bought, 0) - COALESCE(paid, 0)`},
	{12, "C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT) of delivered lines",
		`SELECT COUNT(*) FROM customer LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS bought FROM orders, order_line
WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id AND ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) b
ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id WHERE c_balance + c_ytd_payment <> COALESCE(bought, 0)`},
}

// check counts what violates the conditions. delivered is how many orders were
// delivered since the load, for condition 11; negative: not known.
func check(ctx context.Context, db *sql.DB, warehouses, delivered int) (problems []string, err error) {
	for _, c := range conditions {
		var n int
		if err := db.QueryRowContext(ctx, c.query).Scan(&n); err != nil {
			return problems, fmt.Errorf("condition %d: %w", c.number, err)
		}
		if n > 0 {
			problems = append(problems, fmt.Sprintf("condition %d, %s: violated %d times", c.number, c.what, n))
		}
	}
	var orders, open int
	if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM orders").Scan(&orders); err != nil {
		return problems, err
	}
	if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM new_order").Scan(&open); err != nil {
		return problems, err
	}
	want := warehouses * districts * (firstNewOrder - 1)
	if got := orders - open; delivered >= 0 && got != want+delivered || got < want {
		problems = append(problems, fmt.Sprintf("condition 11, rows of ORDER - rows of NEW-ORDER: %d, not %d and %d deliveries", got, want, delivered))
	}
	return problems, nil
}
