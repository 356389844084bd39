package client_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/triremedb/trireme/client"
)

var ctx = context.Background()

func Example() {
	db, err := client.Open(ctx, client.Options{Addrs: []string{address}, User: "root", Password: "secret", Schema: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	written, err := db.Exec(ctx, "INSERT INTO orders (note, price) VALUES (?, ?)", "example", client.Decimal("9.50"))
	if err != nil {
		log.Fatal(err)
	}
	var price string
	read := db.Reader(client.AtLeast(written.GTID)) // any node, once it has what was written
	err = read.QueryRow(ctx, "SELECT price FROM orders WHERE id = ?", written.LastInsertID).Scan(&price)
	fmt.Println(price, err)
	// Output: 9.50 <nil>
}

func ExampleDB_RunTx() {
	db, err := client.Open(ctx, client.Options{Addrs: []string{address}, User: "root", Password: "secret", Schema: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	_, err = db.RunTx(ctx, nil, func(tx *client.Tx) error {
		if _, err := tx.Exec(ctx, "UPDATE account SET balance = balance - ? WHERE id = 1", 30); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE account SET balance = balance + ? WHERE id = 2", 30)
		return err
	})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleDB_Query() {
	db, err := client.Open(ctx, client.Options{Addrs: []string{address}, User: "root", Password: "secret"})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(ctx, "SELECT 1 AS n, 'one' AS s UNION SELECT 2, NULL")
	if err != nil {
		log.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n int
		var s *string
		if err := rows.Scan(&n, &s); err != nil {
			log.Fatal(err)
		}
		fmt.Println(n, s != nil)
	}
	fmt.Println(rows.Err())
	// Output:
	// 1 true
	// 2 false
	// <nil>
}

func Example_databaseSQL() {
	db, err := sql.Open("trireme", "trireme://root:secret@"+address+"/shop")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	var sum int
	err = db.QueryRow("SELECT ? + ?", 3, 4).Scan(&sum)
	fmt.Println(sum, err)
	// Output: 7 <nil>
}
