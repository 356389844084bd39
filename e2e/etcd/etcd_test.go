// Package etcd tests the registry in etcd against an etcd of its own. It is a module
// of its own, since the server brings many others with it.
package etcd

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/discovery"
	"github.com/triremedb/trireme/replication/transport"
)

// start runs an etcd until the test ends.
func start(t *testing.T) (endpoint string) {
	t.Helper()
	free := func() url.URL {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return url.URL{Scheme: "http", Host: l.Addr().String()}
	}
	client, peer := free(), free()
	cfg := embed.NewConfig()
	cfg.Dir = t.TempDir()
	cfg.LogLevel = "error"
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(30 * time.Second):
		t.Fatal("etcd does not start")
	}
	return client.Host
}

func open(t *testing.T, endpoint, addr string, expect int) *discovery.Etcd {
	t.Helper()
	d, err := discovery.NewEtcd(discovery.EtcdOptions{Name: "c", Addr: addr, Expect: expect, Endpoints: []string{endpoint}, TTL: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}

// Five nodes come at once and three are to found a group: all three found the same
// one, the others join it.
func TestBootstrap(t *testing.T) {
	endpoint := start(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	kinds := map[discovery.Kind]int{}
	groups := map[transport.GroupID]int{}
	ids := map[uint64]int{}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for range 5 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		d := open(t, endpoint, addr, 3)
		fsys := file.OS(t.TempDir())
		b, err := discovery.New(discovery.Options{Env: env.Real(), FS: fsys, Discovery: d, Addr: addr, Name: "c", Every: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		p, err := transport.New(transport.Options{Listener: l, LogFormat: transport.Versions{Min: 1, Max: 1}, AllowPlaintext: true}, b)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		wg.Go(func() {
			a, err := b.Run(ctx, p)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			kinds[a.Kind]++
			groups[a.Group]++
			ids[a.ID]++
		})
	}
	wg.Wait()
	if kinds[discovery.Found] != 3 || kinds[discovery.Join] != 2 || len(groups) != 1 || len(ids) != 5 {
		t.Errorf("kinds %v, groups %v, ids %v", kinds, groups, ids)
	}
}

// What a member announces is there while it lives, and gone soon after.
func TestRegistry(t *testing.T) {
	endpoint := start(t)
	ctx := context.Background()
	a, b := open(t, endpoint, "a:1", 2), open(t, endpoint, "b:1", 2)
	plan := func(d *discovery.Etcd) *discovery.Plan {
		p, err := d.Plan(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	eventually(t, "charter", func() bool {
		p, q := plan(a), plan(b)
		return p.Group != transport.GroupID{} && p.Group == q.Group
	})
	g := plan(a).Group
	announce := func(d *discovery.Etcd, id, term uint64) {
		t.Helper()
		eventually(t, "announcement", func() bool {
			return d.Announce(ctx, discovery.Announcement{Group: g, ID: id, Addr: fmt.Sprintf("%c:1", 'a'+id-1), Term: term}) == nil
		})
	}
	see := func(members int, leader uint64) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d members, leader %d", members, leader), func() bool {
			v, err := a.View(ctx)
			return err == nil && len(v.Members) == members && (leader == 0 && v.Leader == nil || v.Leader != nil && v.Leader.ID == leader)
		})
	}
	announce(a, 1, 0)
	announce(b, 2, 2)
	see(2, 2)
	if !plan(a).Began {
		t.Error("the group has not begun")
	}
	announce(a, 1, 1)
	see(2, 2)
	// A lease that somebody revokes is replaced.
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	kv, err := c.Get(ctx, "/trireme/c/members/2")
	if err != nil || len(kv.Kvs) != 1 {
		t.Fatalf("%v, %v", kv, err)
	}
	if _, err := c.Revoke(ctx, clientv3.LeaseID(kv.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
	see(2, 0)
	announce(b, 2, 2)
	see(2, 2)
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	see(1, 0)
}
