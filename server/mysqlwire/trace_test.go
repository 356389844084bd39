package mysqlwire

import (
	"slices"
	"testing"
)

// TestTraceparent: the last comment of a text, or of a prepared one at each execution, names the span
// of the client that it is part of. Without tracing nobody looks.
func TestTraceparent(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, traced := range []bool{true, false} {
		r := serve(t, func(o *Options, _ *fake) { o.Traced = traced })
		db := r.db(t, nil)
		db.SetMaxOpenConns(1)
		for _, text := range []string{"point /*traceparent='" + parent + "'*/", "point", "point /*traceparent='nonsense'*/"} {
			if _, err := db.Exec(text); err != nil {
				t.Fatal(err)
			}
		}
		var want []string
		if traced {
			want = []string{parent}
		}
		r.fake.mu.Lock()
		if !slices.Equal(r.fake.parents, want) {
			t.Errorf("traced %v: %q", traced, r.fake.parents)
		}
		r.fake.mu.Unlock()
	}
}
