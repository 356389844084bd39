package bodies

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/transport"
)

// local is a network within one process, on goroutines: for the race detector.
type local struct {
	transport.Transport // what is not used here
	id                  uint64
	all                 []*Store
}

func (n *local) Ask(_ context.Context, c transport.Call) ([]byte, error) {
	answer, _, err := n.all[c.To-1].HandleAsk(n.id, c.Kind, c.Payload)
	return answer, err
}

func (n *local) OpenBulk(ctx context.Context, c transport.Call) (transport.BulkReader, error) {
	ctx, cancel := context.WithCancel(ctx)
	p := &localPipe{ctx: ctx, cancel: cancel, chunks: make(chan []byte, 4)}
	go func() {
		_, p.err = n.all[c.To-1].HandleBulk(ctx, n.id, c.Kind, c.Payload, p)
		close(p.chunks)
	}()
	return p, nil
}

type localPipe struct {
	ctx    context.Context
	cancel func()
	chunks chan []byte
	sent   int
	err    error
}

func (p *localPipe) Send(b []byte) error {
	if p.sent++; p.sent%40 == 0 {
		p.cancel() // connections break
	}
	select {
	case p.chunks <- bytes.Clone(b):
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

func (p *localPipe) Next() ([]byte, error) {
	select {
	case b, ok := <-p.chunks:
		if ok {
			return b, nil
		}
		if p.err != nil {
			return nil, p.err
		}
		return nil, io.EOF
	case <-p.ctx.Done():
		return nil, p.ctx.Err()
	}
}

func (p *localPipe) Abort() { p.cancel() }

func (p *localPipe) Close() error {
	p.cancel()
	return nil
}

// Sessions, streams, the log and an applier at work at the same time.
func TestRealTasks(t *testing.T) {
	e := env.Real()
	const members = 3
	all := make([]*Store, members)
	disks := make([]*simfile.FS, members)
	for i := range all {
		disks[i] = simfile.New(e, uint64(i))
		all[i] = New(Options{Env: e, FS: disks[i], Transport: &local{id: uint64(i + 1), all: all}, Member: uint64(i + 1),
			Members: func() []uint64 { return []uint64{1, 2, 3} },
			Leader:  func() (uint64, uint64) { return 1, 5 },
			Quorum:  func(have func(uint64) bool) bool { return have(1) && (have(2) || have(3)) },
			OnBody: func(b *body.File) {
				go func() {
					for b.Hold() { // the applier
						now := b.Status()
						for n := range now.Frames {
							if f, ok := b.Frame(n, now.Epoch); ok {
								_, _ = b.ReadAt(make([]byte, min(f.Stored, 4096)), f.At)
							}
						}
						b.Release()
						if now.State > body.Complete {
							return
						}
						time.Sleep(time.Millisecond)
					}
				}()
			}})
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 4 {
				if err := realTransaction(all, disks, rand.New(rand.NewPCG(uint64(w), uint64(i)))); err != nil {
					t.Error(err)
				}
				_ = all[0].Status()
			}
		})
	}
	wg.Wait()
	for _, s := range all {
		s.DropBefore(6)
		s.Resign(5)
	}
	for _, s := range all {
		s.Close()
		for range 100 { // streams end at their next message
			if len(s.Status().Streams) == 0 {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if left := s.Status().Streams; len(left) > 0 {
			t.Errorf("%+v are left", left)
		}
	}
}

func realTransaction(all []*Store, disks []*simfile.FS, rng *rand.Rand) error {
	if err := disks[0].MkdirAll(defaultDir); err != nil {
		return err
	}
	name := fmt.Sprintf("%s/ML_%x", defaultDir, rng.Uint64())
	f, err := disks[0].Open(name, file.OpenOptions{Exclusive: true})
	if err != nil {
		return err
	}
	s := all[0]
	b := s.Begin(5, body.Owner{}, name, f)
	for i := range 11 {
		frame, h := body.AppendFrame(nil, nil, b.Status().Chain, make([]byte, 1+rng.IntN(200_000)), 1)
		if err := b.Write(frame, h, 1); err != nil {
			return err
		}
		if i < 10 && rng.IntN(8) == 0 {
			b.Truncate(rng.IntN(b.Status().Frames))
		}
		s.Changed(b)
	}
	return realCommit(all, disks, b, rng.IntN(3) > 0)
}

// realCommit commits a transaction on every member, or rolls it back.
func realCommit(all []*Store, disks []*simfile.FS, b *body.File, commit bool) error {
	var l entry.LargeBody
	var err error
	if commit {
		l, err = all[0].Finish(context.Background(), b, func() error { return nil })
	}
	if !commit || err != nil {
		b.End(body.Dropped)
		err = errors.Join(err, disks[0].Remove(b.Name))
		all[0].End(b)
		return err
	}
	names := make([]string, len(all))
	for i, s := range all {
		for s.Fetch(&l, 1, []uint64{1, 2, 3}[:1+i]); !s.Pin(&l); {
			time.Sleep(time.Millisecond)
		}
		name, err := s.Take(&l)
		if err != nil {
			return err
		}
		r, err := disks[i].Open(name, file.OpenOptions{ReadOnly: true})
		if err == nil {
			err = errors.Join(body.Verify(r, &l), r.Close())
		}
		if err != nil {
			return err
		}
		names[i] = name
	}
	// There is no log here to fetch from: the files go when all members have theirs.
	for i, s := range all {
		err = errors.Join(err, disks[i].Remove(names[i]))
		s.Taken(&l, true)
	}
	return err
}
