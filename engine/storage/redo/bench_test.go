package redo

import (
	"fmt"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
)

// nullFS has one file that swallows what is written, to measure the log alone.
type nullFS struct{ file.FS }

type nullFile struct{ file.File }

func (nullFS) Open(string, file.OpenOptions) (file.File, error) { return nullFile{}, nil }
func (nullFS) Exists(string) (bool, error)                      { return false, nil }
func (nullFS) Remove(string) error                              { return nil }
func (nullFS) Rename(string, string) error                      { return nil }
func (nullFS) MkdirAll(string) error                            { return nil }
func (nullFS) SyncDir(string) error                             { return nil }
func (nullFile) WriteAt(p []byte, _ int64) (int, error)         { return len(p), nil }
func (nullFile) Allocate(int64, int64) error                    { return nil }
func (nullFile) Sync() error                                    { return nil }
func (nullFile) Close() error                                   { return nil }

// benchLog makes a log whose checkpoint follows as soon as it asks.
func benchLog(b *testing.B, fsys file.FS) *Log {
	pressure := make(chan struct{}, 1)
	l, err := Create(Options{FS: fsys, Env: env.Real(), Dir: "redo", OnPressure: func() {
		select {
		case pressure <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range pressure {
			if err := l.Checkpoint(l.Published()); err != nil {
				b.Error(err)
			}
		}
	}()
	b.Cleanup(func() {
		if err := l.Close(); err != nil {
			b.Error(err)
		}
		close(pressure)
		<-done
	})
	return l
}

func appendLoop(b *testing.B, l *Log, size, goroutines int) {
	b.SetBytes(int64(size))
	b.ReportAllocs()
	done := make(chan error, goroutines)
	for range goroutines {
		go func() {
			payload := payloadOf(1, size)
			for range b.N / goroutines {
				if err := l.Admit(4096); err != nil {
					done <- err
					return
				}
				add(l, payload)
				l.Unadmit(4096)
			}
			done <- nil
		}()
	}
	for range goroutines {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAppend is Admit, Reserve, Fill, Publish, Unadmit of one group, the file
// costing nothing.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{200, 2000} {
		for _, goroutines := range []int{1, 2} {
			b.Run(fmt.Sprintf("size=%d/goroutines=%d", size, goroutines), func(b *testing.B) {
				appendLoop(b, benchLog(b, nullFS{}), size, goroutines)
			})
		}
	}
}

// BenchmarkAppendToDisk is the same into a real file.
func BenchmarkAppendToDisk(b *testing.B) {
	appendLoop(b, benchLog(b, file.OS(b.TempDir())), 200, 2)
}

// BenchmarkFlush is one group and FlushTo into a real file.
func BenchmarkFlush(b *testing.B) {
	for _, goroutines := range []int{1, 8} {
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) {
			l := benchLog(b, file.OS(b.TempDir()))
			payload := payloadOf(1, 200)
			done := make(chan error, goroutines)
			began := l.Stats().Syncs
			b.ResetTimer()
			for range goroutines {
				go func() {
					var err error
					for i := 0; i < b.N/goroutines && err == nil; i++ {
						var end page.LSN
						if err = l.Admit(4096); err == nil {
							_, end = add(l, payload)
							l.Unadmit(4096)
							err = l.FlushTo(end)
						}
					}
					done <- err
				}()
			}
			for range goroutines {
				if err := <-done; err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(l.Stats().Syncs-began)/float64(b.N), "syncs/op")
		})
	}
}

// BenchmarkScan is recovery's reading of the log: decoding into batches, not
// applying.
func BenchmarkScan(b *testing.B) {
	opt := Options{FS: file.OS(b.TempDir()), Env: env.Real(), Dir: "redo", FlushInterval: time.Hour}
	l, err := Create(opt)
	if err != nil {
		b.Fatal(err)
	}
	var payload []byte
	data := payloadOf(1, 60)
	for i := range uint32(200_000) {
		payload = AppendWrite(payload[:0], page.ID{Space: 5, No: 1 + i%5000}, 1000, data)
		payload = AppendMove(payload, page.ID{Space: 5, No: 1 + i%5000}, 2000, 2004, 300)
		payload = AppendWrite(payload, page.ID{Space: 0xffff0000, No: 1 + i/100}, 3000, data)
		add(l, payload)
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(l.Current() - StartLSN))
	for b.Loop() {
		batch := NewBatch(32 << 20)
		l, err := Open(opt, func(_, end page.LSN, payload []byte) error {
			if batch.Full() {
				batch.Reset()
			}
			return batch.Add(end, payload)
		})
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
