package storage_test

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

func TestSettingsChangeUnderLoad(t *testing.T) {
	d := newDisk(t)
	d.opt.BufferPoolSizeMax, d.opt.PurgeTasks, d.opt.PurgeInterval = 16<<20, 2, time.Millisecond
	d.open()
	var done atomic.Bool
	var wg sync.WaitGroup
	for n := range int64(2) {
		wg.Go(func() {
			for i := int64(0); !done.Load(); i++ {
				at := n*200 + i%190
				if err := d.set("a", at, at+10, i); err != nil {
					t.Errorf("changing: %v", err)
					return
				}
			}
		})
	}
	for i, size := range []int64{1 << 20, 16 << 20, 2 << 20, 5 << 20, 1 << 20, 16 << 20} {
		s := d.eng.Settings()
		s.BufferPoolSize = size
		s.RedoCapacity = int64(4+4*(i%3)) << 20
		s.LockWait = time.Duration(10+i) * time.Second
		s.DeadlockDetect, s.LockFIFO = i%2 == 0, i%2 == 1
		s.PurgeTasks = 1 + i%4
		s.OldBlocksPct, s.OldBlocksTime = 20+i, time.Duration(i)*time.Millisecond+1
		s.Cleaner.IOCapacity = 1000 + i
		if err := d.eng.Set(s); err != nil {
			t.Errorf("step %d: %v", i, err)
		}
		if got := d.eng.Settings(); got != s {
			t.Errorf("step %d: settings are %+v, want %+v", i, got, s)
		}
	}
	done.Store(true)
	wg.Wait()
	d.works("a")
	d.works("b")
	d.close()
	d.opt.PurgeTasks = -1
	d.open()
	d.works("a")
	d.check()
	d.close()
}

func TestImpossibleSettingsChangeNothing(t *testing.T) {
	d := newDisk(t)
	d.open()
	before := d.eng.Settings()
	s := before
	s.LockWait = time.Second
	s.BufferPoolSize, s.RedoCapacity, s.PurgeTasks, s.OldBlocksPct = 8<<20, 1<<20, 3, 0
	want(t, d.eng.Set(s), nil, "innodb_buffer_pool_size is 8388608 bytes", "innodb_redo_log_capacity is 1048576 bytes; the least is 4194304 (4 MiB)",
		"innodb_purge_threads (the engine was opened without purge) is 3", "innodb_old_blocks_pct is 0")
	if got := d.eng.Settings(); got != before {
		t.Errorf("settings are %+v", got)
	}
	// A redo log that the disk has no room for leaves the engine as it was.
	d.fs.SetCapacity(d.fs.Used() + 1<<20)
	s = before
	s.RedoCapacity = 64 << 20
	want(t, d.eng.Set(s), file.ErrNoSpace, "resizing the redo log", "redo/redo.log")
	if got := d.eng.Settings(); got != before {
		t.Errorf("settings are %+v", got)
	}
	d.works("a")
	d.close()
}

func TestStats(t *testing.T) {
	d := newDisk(t)
	d.open()
	before := collect(t, d.eng)
	d.works("a")
	if err := d.set("a", 0, 10, 1); err != nil {
		t.Fatal(err)
	}
	after := collect(t, d.eng)
	for _, name := range []string{"Innodb_buffer_pool_reads", "log_lsn_current", "trx_last_committed", "trx_rseg_history_len", "Innodb_tablespaces_open", "Open_tables"} {
		if after[name] <= before[name] {
			t.Errorf("%s went from %d to %d", name, before[name], after[name])
		}
	}
	for name, value := range map[string]int64{
		"Innodb_buffer_pool_pages_total": 256, "log_capacity": 4 << 20, "trx_active_transactions": 0, "engine_halted": 0,
		"Innodb_page_size": 16384, "purge_failing": 0,
	} {
		if after[name] != value {
			t.Errorf("%s is %d, want %d", name, after[name], value)
		}
	}
	d.close()
}

// collect gathers the statistics; each name comes once and is in docs/metrics.md.
func collect(t *testing.T, eng *storage.Engine) map[string]int64 {
	t.Helper()
	doc, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int64{}
	s := eng.Stats()
	s.Each(func(name string, value int64) {
		if _, twice := all[name]; twice {
			t.Errorf("%s comes twice", name)
		}
		if !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("docs/metrics.md does not explain %s", name)
		}
		all[name] = value
	})
	return all
}

// Tables have as many bytes as their files, whether somebody has them open or not.
func TestTablesSize(t *testing.T) {
	d := newDisk(t)
	d.open()
	open := storage.TablesSize(d.fs)
	d.close()
	want := int64(0)
	for _, name := range []string{"a", "b"} {
		f, err := d.fs.Open(d.file[name], file.OpenOptions{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		size, err := f.Size()
		if err != nil {
			t.Fatal(err)
		}
		want += size
		_ = f.Close()
	}
	if got := storage.TablesSize(d.fs); got < want || got > 2*want || open != got {
		t.Errorf("%d bytes, %d while it is open; the files of two tables have %d", got, open, want)
	}
	if got := storage.TablesSize(simfile.New(env.Real(), 1)); got != 0 {
		t.Errorf("no tables have %d bytes", got)
	}
}
