package session_test

import (
	"context"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// fileWriter is a client that sends a file, in pieces of a few bytes.
type fileWriter struct {
	session.ResultWriter
	text  string
	piece int
	out   session.Outcome
}

func (w *fileWriter) LocalFile(name string, read func(piece []byte) error) error {
	for i := 0; i < len(w.text); i += w.piece {
		if err := read([]byte(w.text[i:min(i+w.piece, len(w.text))])); err != nil {
			return err
		}
	}
	return nil
}

func (w *fileWriter) Done(o session.Outcome) error {
	w.out = o
	return nil
}

func TestLoadData(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{Variables: map[string]string{"local_infile": "ON"}})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	for _, c := range []struct{ sql, text, info, rows string }{
		{"LOAD DATA LOCAL INFILE 'x' INTO TABLE t", "1\tone\t1.5\n2\t\\N\t\\N\n3\ta\\tb\\\\\t7\n",
			"Records: 3  Deleted: 0  Skipped: 0  Warnings: 0", "1 | one | 1.50\n2 | NULL | NULL\n3 | a\tb\\ | 7.00\n"},
		{"LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n' IGNORE 1 LINES (id, v)",
			"id,v\r\n1,\"a,\"\"b\"\"\"\r\n2,NULL\r\n3,\"x\r\ny\"", "Records: 3  Deleted: 0  Skipped: 0  Warnings: 0",
			"1 | a,\"b\" | 9.00\n2 | NULL | 9.00\n3 | x\r\\ny | 9.00\n"},
		{"LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE t FIELDS TERMINATED BY ';' (id, @a) SET v = CONCAT(@a, '!'), d = id * 2", "1;p\n1;q\n",
			"Records: 2  Deleted: 1  Skipped: 0  Warnings: 0", "1 | q! | 2.00\n"},
		{"LOAD DATA LOCAL INFILE 'x' INTO TABLE t", "1\tx\n1\ty\t1\t2\nz\tlong long text\t1\n",
			"Records: 3  Deleted: 0  Skipped: 1  Warnings: 5", "0 | long long  | 1.00\n1 | x | 9.00\n"},
	} {
		for _, piece := range []int{1, 3, 1000} {
			r.Exec(s, "DROP TABLE IF EXISTS t")
			r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10), d DECIMAL(5,2) DEFAULT 9)")
			w := &fileWriter{ResultWriter: sessiontest.Discard, text: c.text, piece: piece}
			if err := s.Query(context.Background(), c.sql, w); err != nil {
				t.Fatalf("%s: %v", c.sql, err)
			}
			if w.out.Info != c.info {
				t.Errorf("%s, pieces of %d: %s", c.sql, piece, w.out.Info)
			}
			if got := r.Text(s, "SELECT * FROM t ORDER BY id"); got != "id | v | d\n"+c.rows {
				t.Errorf("%s, pieces of %d:\n%q\n%q", c.sql, piece, got, "id | v | d\n"+c.rows)
			}
		}
	}
}
