package main

import (
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/triremedb/trireme/server/config"
)

// contained is a machine whose container has the limit, and the environment one variable.
func contained(limit, variable string, heap *int64) machine {
	name, value, _ := strings.Cut(variable, "=")
	return machine{
		root: fstest.MapFS{"proc/self/cgroup": {Data: []byte("0::/\n")}, "sys/fs/cgroup/memory.max": {Data: []byte(limit)}},
		getenv: func(n string) string {
			if n == name {
				return value
			}
			return ""
		},
		limit: func(n int64) int64 {
			old := *heap
			if n >= 0 {
				*heap = n
			}
			return old
		},
	}
}

func TestLimitMemory(t *testing.T) {
	for _, c := range []struct {
		args, limit, variable string
		heap                  int64
		log                   string
		err                   string
	}{
		{"", "max", "", math.MaxInt64, `level=INFO msg=memory limit=none go_limit=none from="" buffer_pool=128M`, ""},
		{"", "1073741824", "", 1073741824 - 143319367 - 1073741824/10, "limit=1024M go_limit=784M from=/sys/fs/cgroup/memory.max buffer_pool=128M", ""},
		{"", "1073741824", "GOMEMLIMIT=300MiB", 300 << 20, "limit=1024M go_limit=300M from=GOMEMLIMIT", ""},
		{"", "1073741824", "GOMEMLIMIT=off", math.MaxInt64, "limit=1024M go_limit=none from=GOMEMLIMIT", ""},
		{"--memory-limit=512M", "1073741824", "", 536870912 - 143319367 - 536870912/10, "limit=512M go_limit=324M from=memory_limit", ""},
		{"--innodb-buffer-pool-size=1G", "1073741824", "GOMEMLIMIT=300MiB", 0, "", "innodb_buffer_pool_size is 1G"},
		{"--innodb-buffer-pool-size=960M", "1073741824", "", 80 << 20, "level=WARN", ""},
	} {
		cfg, err := config.Load(config.Sources{Args: strings.Fields(c.args)})
		if err != nil {
			t.Fatal(err)
		}
		heap := int64(math.MaxInt64) // as the runtime has it from GOMEMLIMIT
		if c.variable == "GOMEMLIMIT=300MiB" {
			heap = 300 << 20
		}
		var text strings.Builder
		err = limitMemory(cfg, contained(c.limit, c.variable, &heap), slog.New(slog.NewTextHandler(&text, nil)))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || heap != c.heap || !strings.Contains(text.String(), c.log) {
			t.Errorf("%+v: %d, %v\n%s", c, heap, err, text.String())
		}
	}
}

func TestShareMemory(t *testing.T) {
	var heap int64
	for _, c := range []struct {
		limit, variable string
		given, want     []string
	}{
		{"max", "", nil, nil},
		{"3221225472", "", nil, []string{"--memory-limit=1073741824"}},
		{"3221225472", "", []string{"--max-connections=5"}, []string{"--memory-limit=1073741824"}},
		{"3221225472", "", []string{"--Memory_limit", "1G"}, nil},
		{"3221225472", "", []string{"--memory-limit=1G"}, nil},
		{"3221225472", "TRIREME_MEMORY_LIMIT=1G", nil, nil},
		{"3221225472", "GOMEMLIMIT=1GiB", nil, nil},
	} {
		if got := shareMemory(contained(c.limit, c.variable, &heap), 3, c.given); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
