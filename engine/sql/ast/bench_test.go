package ast

import (
	"strings"
	"testing"
)

var benchTexts = []struct{ name, sql string }{
	{"point_select", "SELECT c FROM sbtest1 WHERE id=5012"},
	{"range", "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN 4900 AND 4999 ORDER BY c"},
	{"update", "UPDATE sbtest1 SET c='83868641912-28773972837-60736120486-75162659906' WHERE id=5012"},
	{"insert", "INSERT INTO sbtest1 (id, k, c, pad) VALUES (5012, 4993, '83868641912-28773972837', '67847967377-48000963322')"},
	{"join", "SELECT o.o_id, c.c_last, SUM(ol.ol_amount) FROM orders o JOIN customer c ON o.o_c_id = c.c_id AND c.c_w_id = 1 " +
		"LEFT JOIN order_line ol ON ol.ol_o_id = o.o_id WHERE o.o_d_id = 3 AND c.c_balance > 12.5 GROUP BY o.o_id, c.c_last " +
		"HAVING SUM(ol.ol_amount) > 100 ORDER BY 3 DESC LIMIT 10"},
	{"bulk_insert", "INSERT INTO t (a, b, c) VALUES " + strings.Repeat("(123456, 'some text of a row', 1.25),", 999) + "(1, '', 2)"},
}

func BenchmarkNormalize(b *testing.B) {
	for _, t := range benchTexts[:5] {
		b.Run(t.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(t.sql)))
			var buf Buffers
			for b.Loop() {
				if !Normalize(t.sql, 0, &buf) {
					b.Fatal("not ok")
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, t := range benchTexts {
		b.Run(t.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(t.sql)))
			for b.Loop() {
				if _, err := Parse(t.sql, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFormat(b *testing.B) {
	s, err := Parse(benchTexts[4].sql, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		Format(s[0])
	}
}
