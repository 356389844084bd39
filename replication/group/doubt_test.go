package group_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/group"
)

// write inserts a row, with a commit token that is made of its id, and tells how that went.
func write(n *group.Node, id int) (entry.Token, error) {
	token := entry.Token{}
	binary.BigEndian.PutUint64(token[:], uint64(time.Now().UnixMilli())<<16)
	binary.BigEndian.PutUint64(token[8:], uint64(id))
	s, err := n.NewSession()
	if err != nil {
		return token, err
	}
	defer func() { _ = s.Close() }()
	if err := s.Begin(txn.BeginOptions{Token: token, HasToken: true, Options: trx.Options{}}); err != nil {
		return token, err
	}
	o, err := s.Open("shop", "fruit")
	if err == nil {
		err = s.Insert(o, []types.Value{types.NewInt(int64(id)), types.NewString(fmt.Sprint("fruit ", id))}, false)
	}
	if err == nil {
		_, err = s.Commit(context.Background())
	}
	return token, err
}

// soon fails the test if something does not end.
func soon(t *testing.T, what string, fn func() error) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- fn() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(30 * time.Second):
		t.Fatalf("%s does not end", what)
		return nil
	}
}

// A leader that hears nobody any more lets its sessions go, who do not know what has become of
// their transactions. When it hears the others again it does.
func TestForsaken(t *testing.T) {
	t.Parallel()
	r := newRig(t, 3)
	l := r.leader()
	n := r.nodes[l]
	createFruit(t, n)
	r.stop((l + 1) % 3)
	r.stop((l + 2) % 3)
	var token entry.Token
	err := soon(t, "a commit without a majority", func() (err error) {
		token, err = write(n, 1)
		return err
	})
	if !errors.Is(err, txn.ErrOutcomeUnknown) && !errors.Is(err, group.ErrNotLeader) {
		t.Errorf("the commit has ended with %v", err)
	}
	if n.Writable() {
		t.Error("a leader without a majority takes writes")
	}
	if _, err := write(n, 2); !errors.Is(err, group.ErrNotLeader) {
		t.Errorf("a write to who does not lead: %v", err)
	}
	r.start((l + 1) % 3)
	leads := r.nodes[r.leader()]
	number, found, err := leads.Used(token)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the transaction: %d, %v", number, found)
	if again := insertFruit(t, leads, 3); found && again <= number {
		t.Errorf("transaction %d comes after %d", again, number)
	}
}

// smallDisks is a group of three whose disks can be filled.
func smallDisks(t *testing.T) (*rig, []*simfile.FS) {
	r := closedRig(t, 3)
	disks := make([]*simfile.FS, 3)
	for i := range disks {
		disks[i] = simfile.New(env.Real(), uint64(i+1))
		r.options = func(o *group.Options) { o.FS = disks[i] }
		r.start(i)
	}
	return r, disks
}

// A follower whose disk is full says so, be it the log or the tables that cannot grow, and goes on
// by itself once there is space.
func TestFollowerWithoutSpace(t *testing.T) {
	r, disks := smallDisks(t)
	l := r.leader()
	createFruit(t, r.nodes[l])
	follower := (l + 1) % 3
	disks[follower].SetCapacity(disks[follower].Used())
	last := insertFruit(t, r.nodes[r.leader()], 0) // the leader's marks may have filled the disk by now
	for id, until := 1, time.Now().Add(time.Minute); !r.nodes[follower].Status().DiskFull; id++ {
		if last = insertFruit(t, r.nodes[r.leader()], id); time.Now().After(until) {
			t.Fatalf("a follower with a full disk: %+v", r.nodes[follower].Status())
		}
	}
	disks[follower].SetCapacity(0)
	r.equal(last)
	for until := time.Now().Add(time.Minute); r.nodes[follower].Status().DiskFull; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("a follower with space says that it has none")
		}
	}
}

// A leader whose disk is so full that it cannot even remember the commit tokens of what the
// group has committed lets another lead, and keeps no session waiting.
func TestForsakenOnAFullDisk(t *testing.T) {
	r, disks := smallDisks(t)
	l := r.leader()
	n := r.nodes[l]
	createFruit(t, n)
	disks[l].SetCapacity(disks[l].Used())
	// Rows take what the files have left; then somebody waits for space.
	var token entry.Token
	var err error
	for id := 0; err == nil; id++ {
		err = soon(t, fmt.Sprintf("commit %d on a full disk", id), func() (err error) {
			token, err = write(n, id)
			return err
		})
	}
	t.Logf("the last commit: %v; %+v", err, n.Status())
	if r.leader() == l {
		t.Fatal("whose disk is full leads")
	}
	leads := r.nodes[r.leader()]
	if _, _, err := leads.Used(token); err != nil {
		t.Fatal(err)
	}
	last := insertFruit(t, leads, -1)
	disks[l].SetCapacity(0)
	r.equal(last)
}
