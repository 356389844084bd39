package client_test

import (
	"testing"

	"github.com/triremedb/trireme/client"
)

// BenchmarkPoint is a row by its key, prepared, over the stream.
func BenchmarkPoint(b *testing.B) {
	db, err := client.Open(ctx, client.Options{Addrs: []string{address}, User: "root", Password: "secret", Schema: "shop"})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	st := db.Prepare("SELECT balance FROM account WHERE id = ?")
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			var n int64
			if err := st.QueryRow(ctx, 1).Scan(&n); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
